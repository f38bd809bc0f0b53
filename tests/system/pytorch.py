"""PyTorch files that call Python functions: nothing is run. Hostile ones, and ONNX models, take little memory."""
import os
import re
import subprocess

from system import MIB, TENON, Skip, is_sanitized, run_tests, tenon, test

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden")
EDGE = os.path.join(GOLDEN, "pytorch", "edge")
CODE = sorted(name for name in os.listdir(EDGE) if name.startswith("code_"))

# What a process needs to do anything to others, and to make or change files.
CALLS = ("execve,execveat,fork,vfork,clone,clone3,socket,socketpair,connect,bind,open,openat,openat2,creat,unlink,"
         "unlinkat,rename,renameat,renameat2,mkdir,mkdirat,symlink,symlinkat,link,linkat,truncate,kill,ptrace")


def trace(folder, *arguments):
    """The calls of CALLS that the tool makes, one a line."""
    log = os.path.join(folder, "calls")
    try:
        done = subprocess.run(["strace", "-f", "-qq", "-o", log, "-e", f"trace={CALLS}", TENON, *arguments],
                              capture_output=True, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    except FileNotFoundError:
        raise Skip("strace is not installed")
    if b"ptrace" in done.stderr:
        raise Skip(f"strace cannot trace here: {done.stderr.decode().strip()}")
    with open(log) as f:
        return [line.split(None, 1)[1].strip() for line in f if line.strip()]


def forbidden(call, out):
    """Whether a call does more than to read files, to make the output and to start threads."""
    if call.startswith(("+++", "---", "<...")):
        return False
    if call.startswith(("clone", "clone3")):
        return "CLONE_THREAD" not in call
    if call.startswith("open"):
        return bool(re.search(r"O_WRONLY|O_RDWR|O_CREAT", call)) and out is None
    if out is not None and call.startswith(("link", "rename", "unlink")):
        return False
    return True


@test
def no_call_of_a_pickle_is_made(folder):
    assert len(CODE) == 11, CODE
    out = os.path.join(folder, "out.safetensors")
    for name in CODE:
        path = os.path.join(EDGE, name)
        for arguments, made in ((["ls", path], None), (["verify", path], None),
                                (["convert", "-q", "-f", "--drop-metadata", path, out], out)):
            calls = trace(folder, *arguments)
            assert calls and calls[0].startswith("execve("), calls[:1]
            bad = [call for call in calls[1:] if forbidden(call, made)]
            assert not bad, (name, arguments, bad)
    left = set(os.listdir(folder)) - {"calls", "out.safetensors"}
    assert not left, left


@test
def hostile_files_take_little_memory(folder):
    """Twice the file and 64 MiB, beside what the tool takes for the smallest one."""
    if is_sanitized():
        raise Skip("sanitizers take memory of their own")

    def peak(path):
        pid = os.posix_spawn(TENON, [TENON, "ls", path], {},
                             file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                                           (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
        _, status, usage = os.wait4(pid, 0)
        assert os.WIFEXITED(status) and os.WEXITSTATUS(status) in (0, 1, 3), (path, status)
        return usage.ru_maxrss * 1024
    least = peak(os.path.join(EDGE, "ok_minimal.pt"))
    paths = [os.path.join(edge, name) for edge in (EDGE, os.path.join(GOLDEN, "onnx", "edge"))
             for name in sorted(os.listdir(edge)) if name.endswith((".pt", ".pkl", ".onnx"))]
    assert len(paths) > 110, len(paths)
    for path in paths:
        took = peak(path) - least
        assert took <= 2 * os.path.getsize(path) + 64 * MIB, (path, took)


@test
def the_warnings_of_a_call_do_not_change_the_status(folder):
    path = os.path.join(EDGE, "code_value.pt")
    assert "calls posix.system: Python would run it" in tenon("verify", path)


run_tests()
