"""engines.py TENON FOLDER [-v] [WORD...] - the recipes of docs/scale.md, run by real engines.

scripts/test-engines runs it, with the Python of FOLDER/venv, into which the packages of engines go.  A recipe
is a block of the page; only the options of its conversion are replaced.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import slurm
from support import ENVIRONMENT, ROOM, TENON, TESTS, TOOLS, Case, Skip, main, test, tool, write_input

PAGE = pathlib.Path(__file__).parents[2] / "docs/scale.md"
PYTHON = TOOLS / "venv/bin/python"
PATIENCE = 240
LARGE = ROOM / "large.safetensors"
write_input(LARGE, rows=60, layers=400)
SLOW = ("--compress", "zstd:19")        # its pieces take long enough to be caught in the middle
KINDS = [("out.zt", "--cast", "bf16", "--checksum", "crc32c"), ("out.safetensors", "--shard-size", "700000"),
         ("out.zt", "--cast", "*weight=int8,per=tensor", "--compress", "zstd")]


def recipe(heading, number=0):
    """A block of the page, below a heading."""
    section = PAGE.read_text().split(f"\n### {heading}\n")[1].split("\n##")[0]
    return re.findall(r"^```\w+\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[number]


# ---- what an engine needs ----

def system(*words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**ENVIRONMENT, "DEBIAN_FRONTEND": "noninteractive"})
    if done.returncode:
        raise Skip(f"{' '.join(words)}: {(done.stdout.strip() or 'failed').splitlines()[-1]}")


def need_packages(*names):
    """Packages of Debian; the services that they bring are not started."""
    query = ["dpkg-query", "-W", "-f=${db:Status-Status}\n", *names]
    done = subprocess.run(query, capture_output=True, text=True)
    if done.returncode == 0 and set(done.stdout.split()) == {"installed"}:
        return
    if not shutil.which("apt-get"):
        raise Skip(f"this is no Debian system: install {', '.join(names)}")
    as_root = [] if os.getuid() == 0 else ["sudo", "-n"]
    policy = pathlib.Path("/usr/sbin/policy-rc.d")
    ours = os.getuid() == 0 and not policy.exists()
    try:
        if ours:
            policy.write_text("#!/bin/sh\nexit 101\n")
            policy.chmod(0o755)
        system(*as_root, "apt-get", "update", "-qq")
        system(*as_root, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *names)
    finally:
        if ours:
            policy.unlink()


def need_modules(*names):
    found = [subprocess.run([PYTHON, "-c", f"import {name.partition('[')[0]}"], capture_output=True) for name in names]
    if any(done.returncode for done in found):
        system(str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check", *names)


def folder_of(**programs):
    """A folder for PATH in which programs have other names, as Debian's alternatives give them."""
    folder = ROOM / "-".join(programs.values())
    folder.mkdir(exist_ok=True)
    for name, program in programs.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        (folder / name).chmod(0o755)
    return str(folder)


# ---- a conversion as a recipe ----

class Recipe(Case):
    """A folder in which model.safetensors is converted by a text of the page."""

    def __init__(self, name, *options):
        super().__init__(name, *options, source=LARGE)
        self.seen, self.log, self.script = {}, ROOM / f"log{Case.number}", ROOM / f"script{Case.number}"

    def convert(self):
        os.link(LARGE, self.folder / "model.safetensors")
        super().convert()

    def reset(self):
        super().reset()
        os.link(LARGE, self.folder / "model.safetensors")

    def of_shell(self, text):
        words = [*self.options, "--piece-size", "400000"]
        text = text.replace("out.zt, --cast, bf16", ", ".join(map(json.dumps, [self.out.name, *words])))   # of YAML
        return text.replace("out.zt --cast bf16", f"{self.out.name} {shlex.join(words)}").replace(
            "out.zt.tenon", self.work.name)

    def of_python(self, text):
        given = [f"{key.lstrip('-').replace('-', '_')}={value!r}" for key, value in zip(*[iter(self.options)] * 2)]
        return text.replace('"out.zt", cast="bf16"', f'"{self.out.name}", {", ".join(given)}, piece_size=400000')

    def start(self, command, text, *paths, **variables):
        """Runs a command with a script of this text."""
        self.script.write_text(text)
        environment = {**ENVIRONMENT, **variables}
        environment["PATH"] = ":".join([*paths, str(pathlib.Path(TENON).parent), str(PYTHON.parent),
                                        environment["PATH"]])
        with open(self.log, "w") as log:
            return subprocess.Popen([*command, str(self.script)], cwd=self.folder, env=environment,
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def look(self):
        """Notes which records there are: one that is written again is another file."""
        for record in self.work.glob("pieces/*.done"):
            try:
                found = record.stat()
            except FileNotFoundError:
                continue
            self.seen.setdefault(record.name, set()).add((found.st_ino, found.st_mtime_ns))

    def end(self, process):
        """Waits; the exit status."""
        until = time.monotonic() + PATIENCE
        try:
            while process.poll() is None and time.monotonic() < until:
                self.look()
                time.sleep(0.005)
            assert process.returncode is not None, f"it does not end: {self.log.read_text()[-2000:]}"
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return process.returncode

    def no_piece_was_made_twice(self):
        twice = [name for name, files in self.seen.items() if len(files) > 1]
        assert self.seen and not twice, f"made again: {twice} of {len(self.seen)}"

    def kill_one(self, process):
        """Kills a worker that is making a piece, when some are made."""
        until = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < until:
            self.look()
            done = tool("ls", "--json", self.work, code=None) if (self.work / "plan.json").exists() else None
            state = json.loads(done.stdout) if done and done.returncode == 0 else {}
            if state.get("pieces_made", 0) > 2 and state["holders"]:
                os.kill(state["holders"][0]["pid"], signal.SIGKILL)
                return
            time.sleep(0.01)
        raise AssertionError(f"nobody to kill, exit {process.poll()}: {self.log.read_text()[-2000:]}")


# ---- engines: each a function that starts the conversion of a case by its recipe ----

def of_mpi(case, program, **variables):
    return case.start(["bash", "-e"], case.of_shell(recipe("MPI")), folder_of(mpirun=program), **variables)


# As root, on a machine that has fewer cores than processes, and without a network.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader",
            "OMPI_MCA_plm": "isolated", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def open_mpi(case):
    need_packages("openmpi-bin")
    return of_mpi(case, "mpirun.openmpi", **OPEN_MPI)


def mpich(case):
    need_packages("mpich")
    return of_mpi(case, "mpirun.mpich")


def batch(case, number):
    need_packages("slurm-wlm", "munge")
    return case.start(["sbatch", "--wait", f"--output={case.log}.job"], case.of_shell(recipe("Slurm", number)),
                      **slurm.started(ROOM))


def slurm_step(case):
    return batch(case, 0)


def slurm_array(case):
    return batch(case, 1)


def gnu_parallel(case):
    need_packages("parallel")
    return case.start(["bash", "-e"], case.of_shell(recipe("GNU parallel")))


def kubernetes(case):
    """The processes of an indexed job, without containers; one that fails is begun again."""
    need_modules("pyyaml")
    text = case.of_shell(recipe("Kubernetes"))
    job = json.loads(subprocess.run([PYTHON, "-c", "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), "
                                     "sys.stdout)"], input=text, capture_output=True, text=True, check=True).stdout)
    pods, container = job["spec"], job["spec"]["template"]["spec"]["containers"][0]
    assert (pods["completionMode"], pods["template"]["spec"]["restartPolicy"]) == ("Indexed", "OnFailure")
    given = {row["name"]: row["value"] for row in container["env"]}
    assert int(given["TENON_RANKS"]) == pods["completions"] == pods["parallelism"]
    command = f"for i in $(seq 0 {pods['completions'] - 1}); do\n" \
              f"(for try in 1 2 3; do JOB_COMPLETION_INDEX=$i {shlex.join(container['command'])} && exit; done; " \
              f"exit 1) &\npods+=($!)\ndone\nfor pod in ${{pods[@]}}; do wait $pod; done\n"
    return case.start(["bash", "-e"], command, **given)


def of_python(case, heading, *modules, **variables):
    need_modules(*modules)
    return case.start([PYTHON], case.of_python(recipe(heading)), **variables)


def concurrent_futures(case):
    return of_python(case, "concurrent.futures")


def dask(case):
    return of_python(case, "Dask", "distributed")


def ray(case):
    return of_python(case, "Ray", "ray", RAY_USAGE_STATS_ENABLED="0")


def mpi4py(case):
    need_packages("openmpi-bin")
    need_modules("mpi4py")
    program = case.script.with_suffix(".py")
    program.write_text(case.of_python(recipe("mpi4py")))
    return case.start(["bash", "-e"], recipe("mpi4py", 1).replace("convert.py", str(program)),
                      folder_of(mpirun="mpirun.openmpi"), **OPEN_MPI)


def spark(case):
    need_packages("default-jre-headless")
    return of_python(case, "Spark", "pyspark", PYSPARK_PYTHON=str(PYTHON), SPARK_LOCAL_IP="127.0.0.1")


# ---- tests of every engine ----

def writes_what_one_process_writes(engine):
    for kind in KINDS:
        case = Recipe(*kind)
        status = case.end(engine(case))
        assert status == 0, f"{kind}: exit {status}: {case.log.read_text()[-2000:]}"
        case.is_right(str(kind))
        case.no_piece_was_made_twice()


def goes_on_after_a_worker_was_killed(engine, finishes):
    """By itself, or with the same command."""
    case = Recipe("out.zt", *SLOW)
    process = engine(case)
    case.kill_one(process)
    status = case.end(process)
    case.look()
    if "-v" in sys.argv:
        print(f"         {engine.__name__}: exit {status}, {'finished' if case.out.exists() else 'ended'}")
    assert case.out.exists() == finishes, f"exit {status}: {case.log.read_text()[-2000:]}"
    if not finishes:
        assert status != 0
        status = case.end(engine(case))
        assert status == 0, f"again: exit {status}: {case.log.read_text()[-2000:]}"
    elif case.work.exists():                    # without data, for the rank that was killed
        assert json.loads(tool("ls", "--json", case.work).stdout)["published"]
        tool("abandon", case.work)
    case.is_right()
    case.no_piece_was_made_twice()


# Which of them finish when a worker is killed; the others are given the same command again.
ENGINES = {open_mpi: False, mpich: False, slurm_step: True, slurm_array: True, gnu_parallel: True, kubernetes: True,
           concurrent_futures: False, dask: True, ray: True, mpi4py: False, spark: False}


def add(engine, finishes):
    def converts():
        writes_what_one_process_writes(engine)

    def goes_on():
        goes_on_after_a_worker_was_killed(engine, finishes)

    for f, what in ((converts, writes_what_one_process_writes), (goes_on, goes_on_after_a_worker_was_killed)):
        f.__name__ = f"{engine.__name__}_{what.__name__}"
        test(f)


for one, finishes_alone in ENGINES.items():
    add(one, finishes_alone)


# ---- and of some ----

@test
def slurm_alone_a_plain_conversion_in_a_job_of_eight_tasks_works_alone():
    need_packages("slurm-wlm", "munge")
    case = Recipe("out.zt", "--cast", "bf16")
    text = "#!/bin/bash\n#SBATCH --ntasks=8\necho $SLURM_NTASKS\ntenon convert -q model.safetensors out.zt --cast bf16\n"
    output = pathlib.Path(f"{case.log}.job")
    assert case.end(case.start(["sbatch", "--wait", f"--output={output}"], text, **slurm.started(ROOM))) == 0
    assert output.read_text() == "8\n"
    case.is_right()


@test
def slurm_array_task_that_is_queued_again_goes_on():
    case = Recipe("out.zt", *SLOW)
    process = slurm_array(case)
    environment = slurm.started(ROOM)
    while len(case.seen) < 3 and process.poll() is None:
        case.look()
        time.sleep(0.01)
    tasks = slurm.running(environment)
    assert tasks
    subprocess.run(["scontrol", "requeue", tasks[0]], env={**ENVIRONMENT, **environment}, check=True)
    assert case.end(process) == 0, case.log.read_text()
    case.is_right()
    case.no_piece_was_made_twice()


@test
def dask_pieces_that_are_made_return_at_once():
    need_modules("distributed")
    case = Recipe("out.zt", *SLOW)
    text = case.of_python(recipe("Dask")).replace("    plan.finish()\n", """\
    import time
    before = time.monotonic()
    client.gather(client.map(plan.run, range(len(plan)), pure=False))
    assert time.monotonic() - before < 2, time.monotonic() - before
    tenon.distributed.run(plan, client)
""")
    status = case.end(case.start([PYTHON], text))
    assert status == 0, case.log.read_text()[-2000:]
    case.is_right()
    case.no_piece_was_made_twice()


if __name__ == "__main__":
    try:
        code = main()
    finally:
        slurm.stop()
    sys.exit(code)
