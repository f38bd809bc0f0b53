"""SIGKILL at any moment: the output is the old file or the new one, whole, and nothing else is left that matters."""
import fcntl
import os
import random
import re
import shutil
import signal
import subprocess
import time

from system import MIB, TENON, Skip, contents, noise, run_tests, tenon, test, write_safetensors

LITTER = re.compile(r"^\.tenon-[a-z2-7]{6}\.tmp$")
KILLS = 35                      # for each way of converting


def check_folder(folder, old, new):
    """Returns which of the two OUT is; anything but OUT and litter is a failure."""
    names = set(os.listdir(folder))
    assert "out.zt" in names, f"the output is gone: {names}"
    others = {name for name in names if name != "out.zt" and not LITTER.match(name)}
    assert not others, f"left behind: {others}"
    found = contents(os.path.join(folder, "out.zt"))
    assert found in (old, new), f"the output is neither the old nor the new file: {len(found)} bytes"
    return "new" if found == new else "old"


def clean_up(folder, command):
    """The next run removes what a killed one left."""
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    assert os.listdir(folder) == ["out.zt"], f"left behind after another run: {os.listdir(folder)}"


def kill_at_random(folder, options, seed):
    source, out = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out", "out.zt")
    os.mkdir(os.path.dirname(out))
    write_safetensors(source, {f"t{i}": noise(size, i) for i, size in enumerate([9 * MIB, 100, 12 * MIB, MIB, 8 * MIB])})
    saved = os.path.join(folder, "old.zt")
    write_safetensors(os.path.join(folder, "small.safetensors"), {"old": b"the old file"})
    tenon("convert", "--quiet", os.path.join(folder, "small.safetensors"), saved)
    command = [TENON, "convert", "--quiet", "--force", *options, source, out]
    subprocess.run(command, check=True)
    began = time.monotonic()
    subprocess.run(command, check=True)
    length = time.monotonic() - began
    old, new = contents(saved), contents(out)
    pick = random.Random(seed)
    seen = {"old": 0, "new": 0}
    killed = runs = 0
    while killed < KILLS:
        shutil.copyfile(saved, out)
        process = subprocess.Popen(command)
        time.sleep(pick.uniform(0, 1.3 * length))
        process.kill()
        runs += 1
        if process.wait() == -signal.SIGKILL:
            killed += 1
            length *= 1.03
        else:
            length *= 0.9       # others may have slowed the run that was timed
        seen[check_folder(os.path.dirname(out), old, new)] += 1
    clean_up(os.path.dirname(out), command)
    return f"{killed} of {runs} runs killed, old file {seen['old']} times, new {seen['new']} times"


@test
def killed_while_converting_raw_data(folder):
    return kill_at_random(folder, ["--checksum", "crc32c"], 1)


@test
def killed_while_compressing(folder):
    return kill_at_random(folder, ["--compress", "zstd"], 2)


@test
def killed_at_every_step_of_the_end(folder):
    """At the entry of each system call that makes the file appear, by strace."""
    source, out = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out", "out.zt")
    os.mkdir(os.path.dirname(out))
    write_safetensors(source, {"t": noise(MIB)})
    command = [TENON, "convert", "--quiet", "--force", source, out]
    subprocess.run(command, check=True)
    new = contents(out)
    old = b"the old file"
    steps = 0
    for call in ("openat", "fallocate", "pwrite64", "ftruncate", "fsync", "linkat", "renameat2", "close"):
        for when in (1, 2, 3, 20) if call in ("openat", "close", "pwrite64") else (1, 2):
            with open(out, "wb") as f:
                f.write(old)
            try:
                done = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                                       f"inject={call}:signal=SIGKILL:when={when}", *command], stderr=subprocess.PIPE,
                                      env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})     # which cannot be traced
            except FileNotFoundError:
                raise Skip("strace is not installed")
            if done.returncode not in (0, -signal.SIGKILL, 128 + signal.SIGKILL):
                raise Skip(f"strace cannot trace here: {done.stderr.decode().strip()}")
            check_folder(os.path.dirname(out), old, new)
            steps += done.returncode != 0
    clean_up(os.path.dirname(out), command)
    assert steps >= 8, f"only {steps} kills"
    return f"{steps} kills"


@test
def forgotten_files_are_removed_and_others_are_not(folder):
    write_safetensors(os.path.join(folder, "in.safetensors"), {"t": b"data"})
    forgotten, held = os.path.join(folder, ".tenon-abcdef.tmp"), os.path.join(folder, ".tenon-ghijkl.tmp")
    others = [".tenon-abcdef.tmp~", ".tenon-ABCDEF.tmp", ".tenon-abc.tmp", "tenon-abcdef.tmp"]
    for name in [forgotten, held] + [os.path.join(folder, name) for name in others]:
        open(name, "w").close()
    with open(held, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        tenon("convert", "--quiet", os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.zt"))
        assert sorted(os.listdir(folder)) == sorted(others + [os.path.basename(held), "in.safetensors", "out.zt"])


run_tests()
