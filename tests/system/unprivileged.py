"""Permissions that are missing, and things that are no files: a clear message, exit 3, nothing changed."""
import os
import shutil
import socket
import subprocess

from system import Skip, contents, open_program, run_tests, test, write_safetensors

NOBODY = 65534


def tenon(*arguments, code=0, cwd="/"):
    """The tool as an unprivileged user; returns what it said on stderr."""
    command = [open_program(), *arguments]
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            raise Skip("root without setpriv cannot become somebody else")
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"] + command
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=20, cwd=cwd)
    assert done.returncode == code, f"tenon {' '.join(arguments)}: exit {done.returncode}, expected {code}: {done.stderr}"
    return done.stderr


def owned(path, mode):
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    os.chmod(path, mode)
    return path


def make(folder, name="in.safetensors", mode=0o644):
    source = os.path.join(folder, name)
    write_safetensors(source, {"t": b"data"})
    return owned(source, mode)


def check_said(said, path, reason):
    assert said == f"tenon: {path}: {reason}\n", said


@test
def input_that_may_not_be_read(folder):
    owned(folder, 0o755)
    source, out = make(folder, mode=0o000), os.path.join(folder, "out.zt")
    for command in (["ls", source], ["verify", source], ["show", source, "t"], ["meta", source], ["diff", source, source],
                    ["convert", source, out]):
        check_said(tenon(*command, code=3).split("\n")[0] + "\n", source, "cannot open: Permission denied")
    assert os.listdir(folder) == ["in.safetensors"]


@test
def a_folder_that_may_not_be_entered(folder):
    inside = os.path.join(folder, "closed")
    os.mkdir(inside)
    source = make(inside)
    owned(inside, 0o000)
    check_said(tenon("ls", source, code=3), source, "cannot open: Permission denied")
    other = make(folder)
    out = os.path.join(inside, "out.zt")
    said = tenon("convert", other, out, code=3)
    assert said.startswith(f"tenon: {out}: cannot ") and "Permission denied" in said, said


@test
def a_folder_that_may_not_be_written(folder):
    source, closed = make(folder), os.path.join(folder, "closed")
    os.mkdir(closed)
    old = os.path.join(closed, "old.zt")
    with open(old, "w") as f:
        f.write("old")
    owned(old, 0o644)
    owned(closed, 0o555)
    for out in (os.path.join(closed, "new.zt"), old):
        said = tenon("convert", "--quiet", "--force", source, out, code=3)
        check_said(said, out, "cannot write: Permission denied (nothing was replaced)")
    inside = os.path.join(closed, "f.safetensors")
    os.chmod(closed, 0o755)
    make(closed, "f.safetensors")
    os.chmod(closed, 0o555)
    said = tenon("meta", "--set", "k=v", inside, code=3)
    check_said(said, inside, "cannot write: Permission denied (nothing was replaced)")
    assert contents(old) == b"old" and sorted(os.listdir(closed)) == ["f.safetensors", "old.zt"]


@test
def an_output_that_is_write_protected_in_a_folder_that_is_not(folder):
    """Replacing is the folder's affair; the protection stays on the new file."""
    owned(folder, 0o755)
    source, out = make(folder), make(folder, "out.zt", 0o444)
    tenon("convert", "--quiet", "--force", source, out)
    tenon("diff", source, out)
    assert os.stat(out).st_mode & 0o777 == 0o444


@test
def things_that_are_no_files_as_input(folder):
    owned(folder, 0o755)
    fifo, sock, out = (os.path.join(folder, name) for name in ("fifo", "socket", "out.zt"))
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(sock)
        os.chmod(sock, 0o666)
        for path, kind in ((fifo, "FIFO"), (sock, "socket"), ("/dev/null", "device")):
            for command in (["ls", path], ["convert", path, out]):
                check_said(tenon(*command, code=3), path, f"is a {kind}: expected a regular file")
    for command in (["ls", folder], ["convert", folder, out]):
        check_said(tenon(*command, code=3), folder, "is a folder without a tensor file: expected an index, "
                   "model.safetensors, pytorch_model.bin or one file of a known suffix")
        missing = os.path.join(folder, "missing")
        check_said(tenon("ls", missing, code=3), missing, "cannot open: No such file or directory")
    assert not os.path.exists(out)


@test
def things_that_are_no_files_as_output(folder):
    owned(folder, 0o755)
    source, fifo, sub = make(folder), os.path.join(folder, "fifo.zt"), os.path.join(folder, "sub.zt")
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    os.mkdir(sub)
    owned(sub, 0o755)
    check_said(tenon("convert", "--quiet", "--force", source, sub, code=3), sub, "is a directory: expected a regular file or none")
    for path in (fifo, "/dev/null"):
        said = tenon("convert", "--quiet", "--force", "--to", "ztensor", source, path, code=3)
        check_said(said, path, "is a FIFO, socket or device: expected a regular file or none")
    nowhere = os.path.join(folder, "no", "such", "out.zt")
    said = tenon("convert", "--quiet", source, nowhere, code=3)
    assert said.startswith(f"tenon: {nowhere}: cannot ") and "No such file or directory" in said, said
    assert sorted(os.listdir(folder)) == ["fifo.zt", "in.safetensors", "sub.zt"]


@test
def a_folder_of_others_with_the_sticky_bit(folder):
    """/tmp: a file of somebody else cannot be replaced, and none is left beside it."""
    if os.geteuid() != 0:
        raise Skip("needs a file of another user")
    source, shared = make(folder), os.path.join(folder, "shared")
    os.mkdir(shared)
    os.chmod(shared, 0o1777)
    out = os.path.join(shared, "out.zt")
    with open(out, "w") as f:
        f.write("of root")
    os.chmod(out, 0o666)
    said = tenon("convert", "--quiet", "--force", source, out, code=3)
    check_said(said, out, "cannot write: Operation not permitted (nothing was replaced)")
    assert contents(out) == b"of root" and os.listdir(shared) == ["out.zt"]


run_tests()
