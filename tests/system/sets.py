"""Several files that belong together are old or new, whole, wherever a run is killed or a call fails; thousands of them
need few descriptors."""
import atexit
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from crc32c import crc32c
from system import TENON, Skip, contents, is_sanitized, run_tests, tenon, test, write_safetensors

HERE = os.path.dirname(os.path.abspath(__file__))
LITTER = re.compile(r"^\.tenon-[a-z2-7]{6}\.tmp$")
EIO, ENOSPC = 5, 28
_shim = None
if os.access("/dev/shm", os.W_OK):
    tempfile.tempdir = "/dev/shm"       # thousands of files are synced


def shim():
    """fault.c, compiled."""
    global _shim
    if not _shim:
        folder = tempfile.mkdtemp(prefix="tenon-shim-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = os.path.join(folder, "fault.so")
        try:
            subprocess.run(["cc", "-shared", "-fPIC", "-o", path, os.path.join(HERE, "fault.c"), "-ldl"], check=True)
        except FileNotFoundError:
            raise Skip("there is no C compiler")
        _shim = path
    return _shim


def faulty(command, at, error=None):
    """Runs a command that is killed at its call number `at`, or in which that call fails."""
    environment = {**os.environ, "LD_PRELOAD": shim(), "FAULT_AT": str(at),
                   "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
    if error:
        environment["FAULT_ERRNO"] = str(error)
    return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def same(a, b):
    """Whether both can be read and hold the same."""
    return subprocess.run([TENON, "diff", a, b], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def read_folder(folder):
    return {name: contents(os.path.join(folder, name)) for name in os.listdir(folder) if not LITTER.match(name)}


class Scenario:
    """Files in `old`, a command that replaces them, and what loaders may open afterwards."""

    def __init__(self, folder, old, command, heads):
        self.folder = folder
        self.old = os.path.join(folder, "old")
        self.work = os.path.join(folder, "work")
        self.command = [TENON, *command]
        self.heads = heads              # in the order in which loaders look for them
        os.mkdir(self.old)
        for line in old:
            tenon(*line, cwd=self.old)

    def begin(self):
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.old, self.work)
        os.chdir(self.work)

    def is_whole(self, references):
        """Which of the references each head is; None where one is neither, or there is no head at all."""
        found = []
        for head in self.heads:
            if os.path.lexists(head):
                matches = [name for name, path in references.items() if same(path, head)]
                found.append(matches[0] if matches else None)
        return found if found and None not in found else None

    def strays_are_told(self):
        """What lies there and nobody needs is named by verify."""
        head = [head for head in self.heads if os.path.exists(head)][0]
        told = subprocess.run([TENON, "verify", head], stdout=subprocess.PIPE, text=True).stdout
        return set(re.findall(r'"([^"]+)" in its folder', told)), told

    def run(self, references, errors=(EIO, ENOSPC)):
        states = mixed = faults = lies = 0
        notes = []
        for error in (None, *errors):
            for at in range(1, self.calls()):
                self.begin()
                done = faulty(self.command, at, error)
                states += error is None
                faults += error is not None
                whole = self.is_whole(references)
                if not whole:
                    mixed += 1
                    notes.append(f"{'killed' if error is None else error} at {at}: {sorted(os.listdir('.'))}")
                if error and "(nothing was replaced)" in done.stderr:
                    lies += read_folder(".") != read_folder(self.old)
        assert not mixed and not lies, f"{mixed} mixed of {states} kills and {faults} faults, {lies} untrue messages: {notes[:3]}"
        return f"{states} kills, {faults} faults"

    def calls(self):
        """How many calls the command makes."""
        if not hasattr(self, "_calls"):
            at = 1
            while True:
                self.begin()
                if faulty(self.command, at).returncode == 0:
                    break
                at += 1
            self._calls = at
            self.begin()
        return self._calls


def sources(folder):
    """Two files of the same tensors with other bytes, and a third with fewer."""
    for seed, name in enumerate(["a", "b"]):
        write_safetensors(os.path.join(folder, name + ".safetensors"), {f"t{i}": bytes([seed, i]) * 20 for i in range(6)})
    return {name: os.path.join(folder, name + ".safetensors") for name in ("a", "b")}


INDEX, SINGLE = "m.safetensors.index.json", "m.safetensors"


def replace_set(folder, old_size, new_size):
    """A set of shards of old_size over one of new_size; None: a single file."""
    refs = sources(folder)
    def cut(size):
        return ["--shard-size", str(size)] if size else []
    scenario = Scenario(folder, [["convert", "--quiet", refs["a"], SINGLE, *cut(old_size)]],
                        ["convert", "--quiet", "--force", refs["b"], SINGLE, *cut(new_size)], [SINGLE, INDEX])
    note = scenario.run(refs)
    scenario.begin()
    subprocess.run(scenario.command, check=True)
    assert scenario.is_whole(refs) == ["b"], os.listdir(".")
    count = len(os.listdir("."))
    expected = 6 * 40 // new_size + 1 if new_size else 1
    assert count == expected, f"expected {expected} files, found {os.listdir('.')}"
    return note


@test
def a_set_over_a_set_with_as_many_shards(folder):
    return replace_set(folder, 80, 80)


@test
def a_set_over_a_set_with_more_shards(folder):
    return replace_set(folder, 40, 120)


@test
def a_set_over_a_set_with_fewer_shards(folder):
    return replace_set(folder, 120, 40)


@test
def a_set_over_a_single_file(folder):
    return replace_set(folder, None, 80)


@test
def a_single_file_over_a_set(folder):
    return replace_set(folder, 80, None)


@test
def a_set_over_one_that_was_replaced_already(folder):
    refs = sources(folder)
    scenario = Scenario(folder, [["convert", "--quiet", refs["b"], SINGLE, "--shard-size", "80"],
                                 ["convert", "--quiet", "--force", refs["a"], SINGLE, "--shard-size", "80"]],
                        ["convert", "--quiet", "--force", refs["b"], SINGLE, "--shard-size", "80"], [SINGLE, INDEX])
    return scenario.run(refs)


@test
def raw_data_and_its_descriptors(folder):
    refs = sources(folder)
    write_safetensors(refs["a"], {"t0": b"A" * 300, "t1": b"a" * 20})       # of other sizes: they lie elsewhere
    write_safetensors(refs["b"], {"t0": b"B" * 20, "t1": b"b" * 300})
    scenario = Scenario(folder, [["convert", "--quiet", refs["a"], "m.json"]],
                        ["convert", "--quiet", "--force", refs["b"], "m.json"], ["m.json"])
    note = scenario.run(refs)
    scenario.begin()
    subprocess.run(scenario.command, check=True)
    assert len(os.listdir(".")) == 2, os.listdir(".")
    return note


@test
def what_a_kill_leaves_is_told_by_verify_and_by_the_next_run(folder):
    refs = sources(folder)
    scenario = Scenario(folder, [["convert", "--quiet", refs["a"], SINGLE, "--shard-size", "80"]],
                        ["convert", "--quiet", "--force", refs["b"], SINGLE, "--shard-size", "120"], [SINGLE, INDEX])
    found = 0
    for at in range(1, scenario.calls()):
        scenario.begin()
        faulty(scenario.command, at)
        used = set(json.load(open(INDEX))["weight_map"].values()) | {INDEX}
        strays = {name for name in os.listdir(".") if name not in used and not LITTER.match(name)}
        told, text = scenario.strays_are_told()
        assert told == strays, f"killed at {at}: {strays} but told {told}"
        found += bool(strays)
        if strays:
            said = tenon("convert", "--quiet", "--force", refs["b"], SINGLE, "--shard-size", "120")
            for name in strays - set(json.load(open(INDEX))["weight_map"].values()):
                assert name in said or not os.path.exists(name), f"{name} was not told of: {said}"
            assert same(refs["b"], INDEX)
    assert found >= 3, f"only {found} states with something left"
    return f"{found} states with something left"


@test
def two_that_can_be_taken_for_each_other_are_not_ok(folder):
    refs = sources(folder)
    os.chdir(folder)
    tenon("convert", "--quiet", refs["a"], SINGLE, "--shard-size", "80")
    assert "could be taken" in tenon("convert", "--quiet", refs["b"], SINGLE, code=2)
    shutil.copy(refs["b"], SINGLE)
    for head in (SINGLE, INDEX):
        done = subprocess.run([TENON, "verify", head], stdout=subprocess.PIPE, text=True)
        assert done.returncode == 1 and ": ok" not in done.stdout and "AMBIGUOUS" in done.stdout, done.stdout
    tenon("convert", "--quiet", "--force", refs["b"], SINGLE)
    assert sorted(os.listdir(".")) == ["a.safetensors", "b.safetensors", SINGLE], os.listdir(".")


@test
def an_index_cannot_have_other_files_removed(folder):
    refs = sources(folder)
    os.chdir(folder)
    tenon("convert", "--quiet", refs["a"], SINGLE, "--shard-size", "80")
    names = ["precious", "../precious", "m-1-of-2.safetensors", "m-00001-of-00003.safetensors~", "n-00001-of-00003.safetensors",
             "m-0123456-00001-of-00003.safetensors", "m-00001-of-00003.safetensors", "m-0123abcd-00001-of-00003.safetensors"]
    os.mkdir("sub")
    os.chdir("sub")
    for name in names:
        with open(name, "w") as f:
            f.write("kept")
    with open(INDEX, "w") as f:
        json.dump({"weight_map": {str(i): name for i, name in enumerate(names)}}, f)
    tenon("convert", "--quiet", "--force", refs["b"], SINGLE, "--shard-size", "120")
    there = [name for name in names if os.path.exists(name)]
    assert there == names[:6], there
    assert same(refs["b"], INDEX)


@test
def new_files_give_nobody_more_access_than_the_old(folder):
    """Also where one of the old files is missing, or is a link."""
    refs = sources(folder)
    for name in ("missing", "link"):
        os.mkdir(os.path.join(folder, name))
        os.chdir(os.path.join(folder, name))
        tenon("convert", "--quiet", refs["a"], SINGLE, "--shard-size", "80")
        for file in os.listdir("."):
            os.chmod(file, 0o600)
        os.rename("m-00001-of-00003.safetensors", "../elsewhere")
        if name == "link":
            os.symlink("../elsewhere", "m-00001-of-00003.safetensors")
        tenon("convert", "--quiet", "--force", refs["b"], SINGLE, "--shard-size", "80")
        modes = {file: oct(os.stat(file).st_mode & 0o7777) for file in os.listdir(".")}
        assert len(modes) == 4 and set(modes.values()) == {"0o600"}, modes
    os.remove("../elsewhere")


@test
def a_link_to_an_index_elsewhere_is_not_followed(folder):
    """The set over there would name files that lie here; so would descriptors."""
    refs = sources(folder)
    os.chdir(folder)
    for name in ("there", "here"):
        os.mkdir(name)
    for head, made, options in ((INDEX, SINGLE, ["--shard-size", "80"]), ("m.json", "m.json", [])):
        tenon("convert", "--quiet", refs["a"], "there/" + made, *options)
        os.symlink("../there/" + head, "here/" + head)
        before = read_folder("there")
        for dry in ([], ["--dry-run"]):
            said = tenon("convert", "--quiet", "--force", *dry, refs["b"], "here/" + made, *options, code=3)
            assert f'"here/{head}" is a symbolic link into another folder' in said, said
        assert read_folder("there") == before and same(refs["a"], "there/" + head)
        os.remove("here/" + head)
        assert os.listdir("here") == []
        os.symlink("over.json" if head == "m.json" else "over.safetensors.index.json", "here/" + head)
        tenon("convert", "--quiet", "--force", refs["b"], "here/" + made, *options)     # in the same folder
        assert os.path.islink("here/" + head) and same(refs["b"], "here/" + head)
        shutil.rmtree("here")
        os.mkdir("here")
    os.symlink("there", "away")
    tenon("convert", "--quiet", "--force", refs["b"], "away/" + SINGLE, "--shard-size", "80")   # folders are followed
    assert same(refs["b"], "there/" + INDEX)


@test
def a_name_that_has_no_room_for_an_id_is_refused_before_the_work(folder):
    refs = sources(folder)
    os.mkdir(os.path.join(folder, "long"))
    os.chdir(os.path.join(folder, "long"))
    for made, options in (("x" * 222 + ".safetensors", ["--shard-size", "80"]), ("x" * 249 + ".json", [])):
        tenon("convert", "--quiet", refs["a"], made, *options)
        before = read_folder(".")
        said = tenon("convert", "--quiet", "--force", refs["b"], made, *options, code=3)
        assert "too long for this folder: choose a shorter name" in said, said
        assert read_folder(".") == before


@test
def a_set_that_several_programs_write_at_once_is_whole(folder):
    """Each removes the files it replaces, never those that another has put in their place."""
    refs = sources(folder)
    os.mkdir(os.path.join(folder, "set"))
    os.chdir(os.path.join(folder, "set"))
    refused = 0
    for i in range(40):
        running = [subprocess.Popen([TENON, "convert", "--quiet", "--force", refs["ab"[k // 2 % 2]], SINGLE,
                                     "--shard-size", "80" if i % 2 else "120"], stderr=subprocess.PIPE, text=True)
                   for k in range(8)]
        for process in running:
            said = process.communicate(timeout=60)[1]
            refused += process.returncode != 0
            assert process.returncode in (0, 3), said
            assert process.returncode == 0 or said.endswith("try again\n"), said
        assert any(same(path, INDEX) for path in refs.values()), f"after {i + 1} times: {sorted(os.listdir('.'))}"
        for name in set(os.listdir(".")) - set(json.load(open(INDEX))["weight_map"].values()) - {INDEX}:
            os.remove(name)     # of those that others have replaced
    return f"{refused} of 320 refused"


@test
def another_set_whose_name_ends_like_an_id_is_left_alone(folder):
    """model-20240101 beside model: neither removed, whatever an index says, nor taken for something left."""
    refs = sources(folder)
    os.mkdir(os.path.join(folder, "both"))
    os.chdir(os.path.join(folder, "both"))
    tenon("convert", "--quiet", refs["a"], "m-20240101.safetensors", "--shard-size", "80")
    said = tenon("convert", "--quiet", refs["a"], SINGLE, "--shard-size", "80")
    assert said == "", said
    with open(INDEX) as f:
        index = json.load(f)
    index["weight_map"]["more"] = "m-20240101-00001-of-00003.safetensors"
    with open(INDEX, "w") as f:
        json.dump(index, f)
    said = tenon("convert", "--quiet", "--force", refs["b"], SINGLE, "--shard-size", "80")
    assert said == "", said
    assert same(refs["b"], INDEX) and same(refs["a"], "m-20240101.safetensors.index.json")
    tenon("convert", "--quiet", refs["a"], "m-20240101.json")
    tenon("convert", "--quiet", refs["a"], "m.json")
    with open("m.json") as f:
        document = json.load(f)
    document[0]["tenon"] = {"data": "m-20240101.bin"}
    with open("m.json", "w") as f:
        json.dump(document, f)
    said = tenon("convert", "--quiet", "--force", refs["b"], "m.json")
    assert "m-20240101" not in said, said
    assert same(refs["b"], "m.json") and same(refs["a"], "m-20240101.json")


@test
def an_old_file_that_cannot_be_removed_is_told(folder):
    refs = sources(folder)
    os.chdir(folder)
    tenon("convert", "--quiet", refs["a"], SINGLE, "--shard-size", "80")
    os.unlink("m-00001-of-00003.safetensors")
    os.mkdir("m-00001-of-00003.safetensors")    # a folder cannot be unlinked
    said = tenon("convert", "--quiet", "--force", refs["b"], SINGLE, "--shard-size", "80")
    assert '"m-00001-of-00003.safetensors", which the new file replaces, cannot be removed' in said, said
    assert same(refs["b"], INDEX)


def write_floats(path, seed):
    header = json.dumps({"w": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + struct.pack("<8f", *[(i + seed) / 16 for i in range(8)]))


def compiles():
    include = os.path.join(HERE, "..", "..", "include")
    for compiler in (["cc", "-std=c99"], ["c++", "-x", "c++", "-std=c++11"]):
        if not shutil.which(compiler[0]):
            raise Skip(f"{compiler[0]} is not installed")
    results = [subprocess.run([*compiler, "-fsyntax-only", "-I", include, "model.c"], stderr=subprocess.DEVNULL).returncode
               for compiler in (["cc", "-std=c99"], ["c++", "-x", "c++", "-std=c++11"])]
    assert results[0] == results[1] or 0 not in results, results
    return results[0] == 0


def export(folder, options, is_good):
    """Kills export-c over an old export; is_good() says whether the two files are taken for a pair."""
    for seed, name in enumerate(["a", "b"]):
        write_floats(os.path.join(folder, "floats.safetensors"), seed)
        tenon("convert", "--quiet", os.path.join(folder, "floats.safetensors"), os.path.join(folder, name + ".zt"), "--cast",
              "fx8,frac=auto")
    def command(name):
        return ["export-c", os.path.join(folder, name + ".zt"), "-o", ".", "--name", "model", "--force", *options]
    scenario = Scenario(folder, [command("a")], command("b"), [])
    scenario.begin()
    subprocess.run(scenario.command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    old, new = read_folder(scenario.old), read_folder(".")
    assert is_good() and set(old) == set(new) and all(old[name] != new[name] for name in old)
    kills = mixed = 0
    for error in (None, EIO):
        for at in range(1, scenario.calls()):
            scenario.begin()
            done = faulty(scenario.command, at, error)
            found = read_folder(".")
            kills += 1
            if found in (old, new):
                assert is_good()
                continue
            mixed += 1
            assert not is_good(), f"{'killed' if error is None else 'fault'} at {at}: a mixture is taken for good"
            assert set(found) == set(old), f"at {at}: {sorted(found)}"
            assert "(nothing was replaced)" not in done.stderr, done.stderr
    return f"{kills} kills and faults, {mixed} mixtures, all recognised"


@test
def c_source_and_its_header(folder):
    return export(folder, [], compiles)


@test
def an_image_and_its_header(folder):
    def is_good():
        header = contents("model.h").decode()
        image = contents("model.bin")
        return int(re.search(r"image_crc32c (0x[0-9a-f]+)u", header)[1], 16) == crc32c(image)
    return export(folder, ["--binary"], is_good)


COUNT = 10000


@test
def ten_thousand_shards_need_few_descriptors(folder):
    if not folder.startswith("/dev/shm"):
        raise Skip("there is no /dev/shm, and to sync so many files takes minutes")
    os.chdir(folder)
    write_safetensors("in.safetensors", {f"t{i}": struct.pack("<I", i) for i in range(COUNT)})
    few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)), "timeout": 300}
    for command in (["convert", "--quiet", "in.safetensors", SINGLE, "--shard-size", "4"],
                    ["diff", "in.safetensors", INDEX],
                    ["diff", "--io", "pread", "in.safetensors", INDEX],
                    ["verify", INDEX],
                    ["convert", "--quiet", "--force", INDEX, SINGLE, "--shard-size", "4"],
                    ["convert", "--quiet", "--force", "--io", "pread", INDEX, SINGLE, "--shard-size", "4"],
                    ["diff", "in.safetensors", INDEX]):
        tenon(*command, **few)
    assert len(os.listdir(".")) == COUNT + 2, len(os.listdir("."))
    # Killed among ten thousand: the next run takes everything away.
    environment = {**os.environ, "LD_PRELOAD": shim(), "FAULT_AT": str(COUNT),
                   "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
    done = subprocess.run([TENON, "convert", "--quiet", "in.safetensors", "n.safetensors", "--shard-size", "4"],
                          env=environment, preexec_fn=few["preexec_fn"])
    assert done.returncode == -signal.SIGKILL
    litter = [name for name in os.listdir(".") if LITTER.match(name)]
    assert len(litter) == 1 and len(os.listdir(litter[0])) > 1000, "nothing was parked"
    tenon("convert", "--quiet", "in.safetensors", "out.zt", **few)
    assert len(os.listdir(".")) == COUNT + 3, "litter was left"


@test
def the_first_file_of_a_split_comes_last(folder):
    """GGUF has no index: the set is opened by its first file, so that is there only if all others are."""
    source, whole, first = sources(folder)["a"], os.path.join(folder, "whole.gguf"), "m-00001-of-00003.gguf"
    tenon("convert", "--quiet", source, whole, "--cast", "i8")
    scenario = Scenario(folder, [], ["convert", "--quiet", whole, "m.gguf", "--shard-size", "128"], [first])
    done = 0
    for error in (None, EIO, ENOSPC):
        for at in range(1, scenario.calls()):
            scenario.begin()
            result = faulty(scenario.command, at, error)
            if os.path.exists(first):
                assert same(whole, first), f"{error} at {at}: {os.listdir('.')}"
            elif error and result.returncode:
                assert not read_folder("."), f"{error} at {at}: {os.listdir('.')}"
            done += 1
    scenario.begin()
    subprocess.run(scenario.command, check=True)
    assert same(whole, first) and len(os.listdir(".")) == 3, os.listdir(".")
    return f"{done} kills and faults"


@test
def a_full_disk_leaves_the_old_set(folder):
    """Room for the first shards only."""
    if is_sanitized():
        raise Skip("a limit on the size of files concerns the sanitizers, too")
    refs = sources(folder)
    os.chdir(folder)
    tenon("convert", "--quiet", refs["a"], SINGLE, "--shard-size", "80")
    before = read_folder(".")
    write_safetensors("large.safetensors", {"t0": bytes(100), "t1": bytes(1 << 20)})
    before["large.safetensors"] = contents("large.safetensors")
    said = tenon("convert", "--quiet", "--force", "large.safetensors", SINGLE, "--shard-size", "1K", code=3,
                 preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                                     resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))))
    assert "(nothing was replaced)" in said, said
    assert read_folder(".") == before


run_tests()
