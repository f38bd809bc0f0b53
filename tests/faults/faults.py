"""faults.py [OPTION...] TENON TRACE INJECT - everything that can fail does, once.

For each scenario: each system call that can fail does so, with each error that it may have (short reads
and writes too); each allocation does; the process is killed at each system call.  --sample: a part of
that, the same every time, with all calls that make a file appear.

What must hold then:
  - the exit status is 0 to 3; no signal, no hang; where it is not 0 stderr says why
  - "out" is exactly as before, or exactly as after a run without faults; after status 0 the latter
  - "(nothing was replaced)" is said only where nothing was
  - nothing is left in TMPDIR, and what the command reads is not changed
  - after a kill: the target is the old one or the new one, whole; temporary files are gone after the next run
  - where several files make a set, what is left of another set is reported, by the run or by "tenon verify"
"""
import argparse
import concurrent.futures
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import scenarios

TIMEOUT = 30
HEADERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include")
LITTER = re.compile(r"^\.tenon-[a-z2-7]{6}\.tmp$")

# What each call fails with, the likeliest first.  Those that are not here cannot fail, or allocate only.
FAILURES = {
    "open": ["EMFILE", "EACCES", "EIO"], "openat": ["EMFILE", "EACCES", "EIO"],
    "openat2": ["EMFILE", "ENOSYS"], "read": ["EIO", "short", "EINTR"], "pread64": ["EIO", "short", "EINTR"],
    "readv": ["EIO"], "write": ["ENOSPC", "short", "EIO"], "pwrite64": ["ENOSPC", "short", "EINTR", "EIO"],
    "writev": ["ENOSPC"], "ftruncate": ["EIO", "ENOSPC"], "fallocate": ["ENOSPC", "EOPNOTSUPP"],
    "fsync": ["EIO", "ENOSPC", "EINVAL"], "fdatasync": ["EIO"], "sync_file_range": ["EIO"], "link": ["EIO"],
    "linkat": ["EIO", "ENOSPC", "EPERM"], "rename": ["EIO"], "renameat": ["EIO", "ENOSPC"],
    "renameat2": ["EIO", "ENOSPC", "EINVAL"], "unlink": ["EIO", "EACCES"], "unlinkat": ["EIO", "EACCES"],
    "mmap": ["ENOMEM"], "mremap": ["ENOMEM"], "mprotect": ["ENOMEM"], "mkdir": ["ENOSPC"],
    "mkdirat": ["ENOSPC"], "copy_file_range": ["EIO", "EXDEV"], "ioctl": ["EINVAL"], "stat": ["EIO"],
    "lstat": ["EIO"], "fstat": ["EIO"], "newfstatat": ["EIO", "ENOMEM"], "statx": ["EIO"], "statfs": ["EIO"],
    "fstatfs": ["EIO"], "lseek": ["EIO"], "access": ["EACCES"], "faccessat": ["EACCES"],
    "faccessat2": ["EACCES"], "readlink": ["EIO"], "readlinkat": ["EIO"], "getdents64": ["EIO"],
    "flock": ["ENOLCK"], "fcntl": ["EINVAL"], "fchmod": ["EPERM"], "fchown": ["EPERM"],
    "fchmodat": ["EPERM"], "fadvise64": ["EINVAL"], "madvise": ["EINVAL"], "close": ["EIO"],
    "dup": ["EMFILE"], "memfd_create": ["EMFILE"], "getrandom": ["ENOSYS"], "socket": ["EMFILE"],
    "connect": ["ECONNREFUSED"], "sendmsg": ["ENOBUFS", "EPIPE"], "recvmsg": ["ENOMEM", "ECONNRESET"],
    "getsockopt": ["ENOBUFS"], "setsockopt": ["ENOMEM"], "poll": ["ENOMEM", "EINTR"], "clone": ["EAGAIN"],
    "clone3": ["EAGAIN"], "seccomp": ["EINVAL"], "prctl": ["EINVAL"], "flistxattr": ["EIO"],
    "fgetxattr": ["EIO"], "fsetxattr": ["ENOSPC"], "getxattr": ["EIO"], "setxattr": ["ENOSPC"],
    "listxattr": ["EIO"], "sched_getaffinity": ["EINVAL"], "prlimit64": ["EPERM"], "getcwd": ["ENOENT"],
    "eventfd2": ["EMFILE"], "symlinkat": ["EIO"], "landlock_create_ruleset": ["ENOSYS"],
    "landlock_add_rule": ["EINVAL"], "landlock_restrict_self": ["E2BIG"],
}
APPEARING = {"linkat", "renameat", "renameat2", "rename", "link", "unlinkat", "unlink", "fsync", "ftruncate",
             "fallocate"}


class Bad(Exception):
    """What does not hold; the text says what was found."""


class Run:
    """How one run ended: "exit 0", "signal 9" or "hang"; what it said; the call that was spoiled, or None."""

    def __init__(self, end, stdout, stderr, spoiled):
        self.end, self.stdout, self.stderr, self.spoiled = end, stdout, stderr, spoiled


class Place:
    """A scenario in a folder of its own, with what it looks like before and after."""

    def __init__(self, scenario, tools):
        self.scenario, self.tools = scenario, tools
        self.folder = tempfile.mkdtemp(prefix="tenon-faults-")
        self.beside = None
        scenarios.make_inputs(self.folder)
        for name in ("out", "tmp"):
            os.mkdir(self.path(name))
        for name in scenario.files:
            shutil.copy(self.path("in/" + name), self.path("out/" + name))
        for command in scenario.old:
            scenarios.tenon(*command, cwd=self.folder)
        self.inputs, self.old = self.state("in"), self.state("out")
        self.old_view = self.view()
        self.beside = scenario.ready(self.folder) if scenario.ready else None

    def close(self):
        if self.beside:
            self.beside.terminate()
            self.beside.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def state(self, folder):
        files = {}
        for name in os.listdir(self.path(folder)):
            with open(self.path(f"{folder}/{name}"), "rb") as f:
                files[name] = f.read()
        return files

    def reset(self):
        now = self.state("out")
        for name in now:
            if name not in self.old:
                os.unlink(self.path("out/" + name))
        for name, data in self.old.items():
            if now.get(name) != data:
                with open(self.path("out/" + name), "wb") as f:
                    f.write(data)
        for name in os.listdir(self.path("tmp")):
            os.unlink(self.path("tmp/" + name))
        shutil.rmtree(self.path("work"), ignore_errors=True)

    # ---- running ----

    def run(self, mode=(), allocation=None, count=None):
        """mode: what trace is told; else the program runs by itself, with this allocation failing."""
        log = self.path("log")
        environment = {**os.environ, "TMPDIR": self.path("tmp"), "LC_ALL": "C"}
        command = [scenarios.TENON, *self.scenario.command]
        if mode:
            environment["FAULTS_PRELOAD"] = self.tools.inject
            command = [self.tools.trace, log, *map(str, mode), "--", *command]
        else:
            environment["LD_PRELOAD"] = self.tools.inject
            environment["FAULTS_ALLOCATION"] = str(allocation or 0)
            if count:
                environment["FAULTS_COUNT"] = count
        try:
            done = subprocess.run(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired as late:
            return Run("hang", late.stdout or b"", late.stderr or b"", None)
        if not mode:
            end = f"signal {-done.returncode}" if done.returncode < 0 else f"exit {done.returncode}"
            return Run(end, done.stdout, done.stderr, None)
        with open(log) as f:
            lines = f.read().splitlines()
        if not lines:
            raise RuntimeError(f"trace failed: {done.stderr.decode(errors='replace')}")
        self.calls = [line.split() for line in lines[:-1]]
        spoiled = self.calls[0] if self.calls and mode[0] != "count" else None
        return Run(lines[-1], done.stdout, done.stderr, spoiled)

    def learn(self):
        """What a run without faults makes, calls and allocates."""
        self.reset()
        plain = self.run(("count",))
        self.expected, self.new = plain, self.state("out")
        calls = [call[1] for call in self.calls]
        if plain.end != "exit 0":
            raise Bad(f"a run without faults ends with {plain.end}: {plain.stderr.decode(errors='replace')}")
        self.new_view = self.view()
        if self.scenario.judge == "source" and not self.compiles():
            raise Bad("a run without faults makes source that does not compile")
        self.reset()
        count = self.path("count")
        self.run(count=count)
        with open(count) as f:
            allocations = int(f.read())
        os.unlink(count)
        return calls, allocations

    # ---- looking ----

    def view(self):
        """What somebody who reads the target finds: its tensors as one file; None; or "unreadable"."""
        target, kind = self.scenario.target, self.scenario.judge
        if kind == "nothing" or not os.path.exists(self.path(target)):
            return None
        if kind in ("source", "text"):
            return self.state("out").get(os.path.basename(target))
        copy = self.path("copy.zt")
        known = ["--from", "btf"] if target.endswith(".btf") else []
        done = subprocess.run([scenarios.TENON, "convert", target, copy, "--force", "-q", *known],
                              cwd=self.folder, stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            return "unreadable"
        with open(copy, "rb") as f:
            return f.read()

    def needed(self, state):
        """The files of "out" that whoever reads the target reads, of a set."""
        target = os.path.basename(self.scenario.target)
        if target not in state:
            return set()
        if target.endswith(".index.json"):
            return {target} | set(json.loads(state[target])["weight_map"].values())
        named = {name for name in state if name.encode() in state[target]}
        return {target} | (named or {target.replace(".json", ".bin")})

    def check_reported(self, state, said):
        """What is left of another set is named, by the run or by "tenon verify"."""
        left = {name for name in set(state) - self.needed(state) if name not in self.scenario.files}
        if not left:
            return
        verify = subprocess.run([scenarios.TENON, "verify", self.scenario.target], cwd=self.folder,
                                capture_output=True)
        text = said + verify.stdout + verify.stderr
        silent = sorted(name for name in left if name.encode() not in text)
        if silent:
            raise Bad(f"left behind and not reported: {', '.join(silent)}")

    def compiles(self):
        compiler = ["cc", "-std=c99", "-fsyntax-only", f"-I{HEADERS}", "out/net.c"]
        return subprocess.run(compiler, cwd=self.folder, stderr=subprocess.DEVNULL).returncode == 0

    # ---- judging ----

    def check_ended(self, run):
        if run.end == "hang":
            raise Bad(f"did not end within {TIMEOUT} s")
        if run.end not in ("exit 0", "exit 1", "exit 2", "exit 3"):
            raise Bad(f"ended with {run.end}")
        cannot_say = run.spoiled and run.spoiled[1] == "write" and run.spoiled[2] == "2"
        if run.end != "exit 0" and not run.stderr.strip() and not cannot_say:
            raise Bad(f"{run.end}, and nothing was said")
        if run.end == "exit 0" and run.stdout != self.expected.stdout:
            raise Bad("exit 0, but stdout is not what it is without faults")

    def is_litter_and_said(self, run, state):
        """A temporary name that could not be removed is in the message, and all else is new."""
        litter = {name for name in state if LITTER.match(name)}
        rest = {name: data for name, data in state.items() if name not in litter}
        return rest == self.new and all(name.encode() in run.stderr for name in litter)

    def check_state(self, run):
        state = self.state("out")
        if b"nothing was replaced" in run.stderr and state != self.old:
            raise Bad(f"says \"nothing was replaced\" but something was: {self.describe(state)}")
        if state == self.new or (state == self.old and run.end != "exit 0"):
            return
        if run.spoiled and run.spoiled[1] == "unlink" and self.is_litter_and_said(run, state):
            return
        if self.scenario.judge == "set":
            views = [self.new_view] if run.end == "exit 0" else [self.old_view, self.new_view]
            if self.view() in views:
                self.check_reported(state, run.stderr)
                return
        if self.scenario.judge == "source" and run.end != "exit 0" and set(state) == set(self.old):
            if not self.compiles():
                return
        raise Bad(f"{run.end}, and the output is {self.describe(state)}")

    def check_killed(self):
        """The old or the new is there.  The next run removes temporary files, and reports others."""
        state = self.state("out")
        if state in (self.old, self.new):
            return
        rest = {name: data for name, data in state.items() if not LITTER.match(name)}
        if rest not in (self.old, self.new):
            self.check_view(state)
        again = self.run(("count",))
        after = self.state("out")
        whole = after == self.new or (self.scenario.judge == "set" and self.view() == self.new_view)
        if again.end != "exit 0" or not whole:
            raise Bad(f"killed; the next run: {again.end}, {self.describe(after)}")
        if self.scenario.judge == "set":
            self.check_reported(after, again.stderr)

    def check_view(self, state):
        view = self.view()
        if self.scenario.judge not in ("set", "source"):
            raise Bad(f"killed, and the output is neither the old nor the new: {self.describe(state)}")
        if self.scenario.judge == "source" and not self.compiles():
            return
        if self.scenario.judge == "source" or view not in (self.old_view, self.new_view):
            what = "unreadable" if view == "unreadable" else "a mixture"
            raise Bad(f"killed, and the set is {what}: {self.describe(state)}")

    def describe(self, state):
        def word(name):
            if state[name] == self.new.get(name):
                return "new"
            return "old" if state[name] == self.old.get(name) else "neither"
        missing = [f"{name} missing" for name in sorted(set(self.old) - set(state))]
        return ", ".join([f"{name} {word(name)}" for name in sorted(state)] + missing) or "empty"

    def check(self, point, run):
        killed = point[0] == "kill" and run.end == "signal 9"
        if killed:
            self.check_killed()
        else:
            self.check_ended(run)
            self.check_state(run)
            if os.listdir(self.path("tmp")):
                raise Bad(f"left in TMPDIR: {os.listdir(self.path('tmp'))}")
        if self.state("in") != self.inputs:
            raise Bad("an input was changed")

    def try_point(self, point):
        """point: (kind, number, name, failure).  None: as it should be, or what is wrong."""
        kind, number, name, failure = point
        self.reset()
        if kind == "allocation":
            run = self.run(allocation=number)
        elif kind == "kill":
            run = self.run(("kill", number))
        else:
            run = self.run((failure if failure == "short" else getattr(errno, failure), number, name))
        try:
            missed = run.end != "signal 9" if kind == "kill" else kind == "call" and not run.spoiled
            if missed and run.end != "hang":
                raise Bad("the call did not come: nothing was tried")
            self.check(point, run)
        except Bad as problem:
            said = run.stderr.decode(errors="replace").strip().replace("\n", " | ")
            return f"{problem}" + (f"; stderr: {said}" if said else "")
        return None


# ---- what is tried ----

def spread(points, most):
    """At most so many of them, evenly."""
    return points if len(points) <= most else [points[i * len(points) // most] for i in range(most)]


def choose(calls, allocations, sample):
    faults = [("call", i + 1, name, failure)
              for i, name in enumerate(calls) for failure in FAILURES.get(name, [])]
    kills = [("kill", i + 1, name, "SIGKILL") for i, name in enumerate(calls)]
    empty = [("allocation", i + 1, "allocation", "ENOMEM") for i in range(allocations)]
    if not sample:
        return faults + kills + empty
    first = [p for p in faults if p[3] == FAILURES[p[2]][0]]
    appearing = spread([p for p in first if p[2] in APPEARING], 30)
    end = [p for p in kills if p[2] in APPEARING or (p[1] > 1 and calls[p[1] - 2] in APPEARING)]
    others = spread([p for p in first if p[2] not in APPEARING], 36)
    return appearing + others + spread(end, 30) + spread(kills, 20) + spread(empty, 30)


NO_FAULT = ("run", 0, "without faults", "-")


def check_reference(place):
    """A run without faults leaves nothing of an older set."""
    if place.scenario.judge == "set":
        left = sorted(set(place.new) - place.needed(place.new))
        return [(NO_FAULT, f"left behind: {', '.join(left)}")] if left else []
    return []


def work(task):
    """One part of a scenario, in a process of its own: (counts of each kind, what is bad)."""
    name, tools, part, parts = task
    scenario = next(s for s in scenarios.ALL if s.name == name)
    scenarios.TENON = tools.tenon
    counts, bad = {"calls": 0, "allocations": 0, "call": 0, "allocation": 0, "kill": 0}, []
    place = Place(scenario, tools)
    try:
        calls, allocations = place.learn()
        counts["calls"], counts["allocations"] = len(calls), allocations
        if part == 0:
            bad += check_reference(place)
        for point in choose(calls, allocations, tools.sample)[part::parts]:
            problem = place.try_point(point)
            counts[point[0]] += 1
            if problem:
                bad.append((point, problem))
    except Bad as problem:
        bad.append((NO_FAULT, str(problem)))
    finally:
        place.close()
    return counts, bad


def report(scenario, parts, verbose):
    """One line for the scenario, and some for what is bad.  Whether nothing is."""
    total = {key: sum(counts[key] for counts, _ in parts) for key in ("call", "kill", "allocation")}
    bad = [each for _, some in parts for each in some]
    counts = parts[0][0]
    tried = sum(total.values()) + len([1 for point, _ in bad if point == NO_FAULT])
    print(f"{'FAIL' if bad else 'ok  '}  {scenario.name}: {counts['calls']} calls, {counts['allocations']} "
          f"allocations; {total['call']} faults, {total['allocation']} allocations, {total['kill']} kills: "
          f"{tried - len(bad)} ok, {len(bad)} bad", flush=True)
    for (kind, number, name, failure), problem in bad if verbose else bad[:5]:
        print(f"      {kind} {number} ({name}, {failure}): {problem}")
    if len(bad) > 5 and not verbose:
        print(f"      and {len(bad) - 5} more (--verbose shows them)")
    return not bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sample", action="store_true", help="a part of it, in less than a minute")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", default="", help="scenarios whose name has this text")
    parser.add_argument("--verbose", action="store_true", help="everything that is bad, not the first of it")
    for name in ("tenon", "trace", "inject"):
        parser.add_argument(name, type=os.path.abspath)
    tools = parser.parse_args()
    passed = failed = 0
    chosen = [scenario for scenario in scenarios.ALL if tools.only in scenario.name]
    with concurrent.futures.ProcessPoolExecutor(tools.jobs) as pool:
        started = [(s, [pool.submit(work, (s.name, tools, part, tools.jobs)) for part in range(tools.jobs)])
                   for s in chosen]
        for scenario, parts in started:
            good = report(scenario, [part.result() for part in parts], tools.verbose)
            passed, failed = passed + good, failed + (not good)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
