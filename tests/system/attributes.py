"""A file that is replaced keeps what it is besides its bytes; what it cannot keep is said."""
import errno
import os
import shutil
import struct
import subprocess

from system import Skip, open_program, run_tests, tenon, test, write_safetensors

OWNER, GROUP, WRITER = 65533, 65532, 65534
SAID = "replaced, but not all of the old file could be kept"


def as_another(*arguments):
    """The tool as a user without privileges; what it said."""
    if not shutil.which("setpriv"):
        raise Skip("root without setpriv cannot become somebody else")
    become = ["setpriv", f"--reuid={WRITER}", f"--regid={WRITER}", "--clear-groups", "--"]
    done = subprocess.run([*become, open_program(), *arguments], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, f"tenon {' '.join(arguments)}: exit {done.returncode}: {done.stderr}"
    return done.stderr


def need_root():
    if os.geteuid() != 0:
        raise Skip("only root can give files to other users")


def set_attribute(path, name, value):
    try:
        os.setxattr(path, name, value)
    except OSError as problem:
        if problem.errno != errno.ENOTSUP:
            raise
        raise Skip(f"the file system of {os.path.dirname(path)} has no {name}")


def access_list(*entries):
    """entries: tag, bits, id; as the kernel takes them."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, bits, who) for tag, bits, who in entries)


NO_ID = 0xffffffff
LIST = access_list((1, 6, NO_ID), (2, 4, 65531), (4, 4, NO_ID), (16, 4, NO_ID), (32, 0, NO_ID))


def write_npy(path):
    """Four floats."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
    header = header.ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        f.write(struct.pack("<4f", 1, 2, 3, 4))


def make(folder):
    source = os.path.join(folder, "in.safetensors")
    write_safetensors(source, {"t": b"data"})
    os.chmod(source, 0o644)
    return source


def changes(folder, source):
    """Every command that replaces a file: the file, and the arguments."""
    edited, converted = os.path.join(folder, "edited.zt"), os.path.join(folder, "converted.zt")
    sidecar, header = source + ".wia.json", os.path.join(folder, "codes.h")
    tenon("convert", "--quiet", source, edited)
    tenon("convert", "--quiet", source, converted)
    tenon("describe", "--quiet", "--sidecar", source)
    codes = os.path.join(folder, "codes.npy")
    write_npy(codes)
    tenon("convert", "--quiet", "--cast", "fx8", codes, codes + ".zt")
    export = ["export-c", "--quiet", "--force", "--name", "codes", codes + ".zt", "-o", folder]
    tenon(*export)
    return [(edited, ["meta", "--quiet", "--set", "k=v", edited]),
            (converted, ["convert", "--quiet", "--force", source, converted]),
            (sidecar, ["describe", "--quiet", "--sidecar", "--force", source]),
            (header, export)]


@test
def every_command_keeps_what_it_can(folder):
    need_root()
    source = make(folder)
    for path, command in changes(folder, source):
        os.chown(path, OWNER, GROUP)
        os.chmod(path, 0o640)
        set_attribute(path, "user.origin", b"somewhere")
        set_attribute(path, "system.posix_acl_access", LIST)
        before = os.stat(path)
        said = tenon(*command)
        after = os.stat(path)
        assert said == "", said
        assert after.st_ino != before.st_ino, f"{command[0]} did not replace the file"
        assert (after.st_uid, after.st_gid, after.st_mode) == (OWNER, GROUP, before.st_mode), after
        assert os.getxattr(path, "user.origin") == b"somewhere"
        assert os.getxattr(path, "system.posix_acl_access") == LIST


@test
def every_command_says_what_it_cannot_keep(folder):
    need_root()
    source = make(folder)
    os.chmod(folder, 0o777)
    for path, command in changes(folder, source):
        os.chown(path, OWNER, GROUP)
        os.chmod(path, 0o664)
        said = as_another(*command)
        said = said.splitlines()            # of two files that are exported, the first is root's
        assert said[-1] == f"tenon: {path}: {SAID}: owner {OWNER}, group {GROUP}, mode 0664 (now 0644)", said
        assert len(said) == 1 or said[:-1] == [f"tenon: {path[:-1]}c: {SAID}: owner 0, group 0"], said
        after = os.stat(path)
        assert (after.st_uid, after.st_gid, after.st_mode & 0o7777) == (WRITER, WRITER, 0o644), after


@test
def a_list_that_cannot_be_kept_gives_nobody_access(folder):
    need_root()
    source = make(folder)
    os.chmod(folder, 0o777)
    for path, command in changes(folder, source):
        os.chown(path, OWNER, GROUP)
        os.chmod(path, 0o644)
        set_attribute(path, "system.posix_acl_access", access_list(
            (1, 6, NO_ID), (2, 0, 65531), (4, 4, NO_ID), (16, 4, NO_ID), (32, 4, NO_ID)))
        said = as_another(*command)
        assert f"{SAID}: owner {OWNER}, group {GROUP}, access list, mode 0644 (now 0600)" in said, said
        assert os.stat(path).st_mode & 0o7777 == 0o600 and "system.posix_acl_access" not in os.listxattr(path)


run_tests()
