"""hosts.py - processes that have host names and process numbers of their own, as in containers; run by tests.py."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from support import ENVIRONMENT, ROOM, TENON, Case, Skip, begin, end, tells, test, tool, write_input

SOURCE = ROOM / "hosts.safetensors"


def on_host(name, *words, env=None):
    """A process of tenon that sees only itself, on a host of this name."""
    own = ["unshare", *([] if os.getuid() == 0 else ["--map-root-user"]), "--uts", "--pid", "--fork", "--mount-proc",
           "--kill-child", "sh", "-c", f'hostname {name} && exec "$@"', "sh", TENON, *map(str, words)]
    return subprocess.Popen(own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**ENVIRONMENT, **(env or {})})


def need_hosts():
    if not shutil.which("unshare") or on_host("other", "version").wait(20):
        raise Skip("no namespaces: unshare --uts --pid")


def case_of_hosts():
    need_hosts()
    if not SOURCE.exists():
        write_input(SOURCE, rows=60, layers=100)
    return Case("out.zt", "--compress", "zstd:19", source=SOURCE)


def inside(process):
    """The process that unshare has begun."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[0]) if children else None


@test
def processes_of_several_hosts_write_what_one_writes():
    case = case_of_hosts()
    for n in (2, 5):
        case.reset()
        end([on_host(f"host{i}", *case.command("--ranks", f"{i}/{n}")) for i in range(n)])
        case.is_right(f"by {n}")


@test
def a_process_of_another_host_that_holds_a_piece_is_named_and_judged_by_its_lock():
    case = case_of_hosts()
    case.plan()
    far = on_host("far", "run", case.work, "-q", "-j", "1")
    held, until = [], time.monotonic() + 30
    while not held and time.monotonic() < until:        # it is caught while it makes a piece
        pid = inside(far)
        if pid:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.01)
            held = json.loads(tool("ls", "--json", case.work).stdout)["holders"]
            if not held:
                os.kill(pid, signal.SIGCONT)
        time.sleep(0.005)
    (holder,) = held
    assert (holder["host"], holder["stopped"]) == ("far", False) and holder["pid"] < 10, holder
    command = case.command()
    command.remove("-q")
    near = begin(*command)
    line = tells(near, "waiting")
    assert f"waiting for process {holder['pid']} on far, which has piece {holder['piece']}" in line, line
    assert "stopped" not in line and "locks" not in line, line
    assert near.poll() is None and not case.out.exists()
    os.kill(inside(far), signal.SIGKILL)
    far.communicate()
    end([near])
    case.is_right()


@test
def a_process_of_another_host_that_was_killed_is_no_sign_of_locks_that_do_not_work():
    case = case_of_hosts()
    command = case.command("-j", "1")
    command.remove("-q")
    for _ in range(3):                  # their numbers are the same, and often their starts
        case.reset()
        processes = [on_host(f"host{i}", *command) for i in range(3)]
        until = time.monotonic() + 30
        while len(list(case.work.glob("pieces/*.done"))) < 4 and time.monotonic() < until:
            time.sleep(0.005)
        processes[1].kill()
        told = end([processes[0], processes[2]])
        processes[1].communicate()
        assert not any("locks" in line for line in told), told
        case.is_right()
