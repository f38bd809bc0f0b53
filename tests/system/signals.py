"""A signal during convert: the tool ends by that very signal, and nothing is left."""
import os
import signal
import subprocess
import time

from system import MIB, TENON, contents, noise, run_tests, tenon, test, write_safetensors

for number in (signal.SIGINT, signal.SIGHUP):           # a background job may have been told to ignore them, and the tool would too
    signal.signal(number, signal.SIG_DFL)


def prepare(folder):
    """A conversion that takes a while, over an old file."""
    source, out = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out", "out.zt")
    os.mkdir(os.path.dirname(out))
    letters = bytes(i % 11 for i in range(256))         # compressible, slowly
    write_safetensors(source, {f"t{i}": noise(2 * MIB, i).translate(letters) for i in range(24)})
    write_safetensors(out, {"old": b"old"})
    return [TENON, "convert", "--quiet", "--force", "--compress", "zstd:7", source, out], out


def interrupt(folder, number):
    command, out = prepare(folder)
    old = contents(out)
    stopped = 0
    for delay in (0.02, 0.1, 0.2, 0.3):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
        if process.returncode == 0:
            break               # it was faster
        assert process.returncode == -number, f"ended with {process.returncode}, not by signal {number}: {said}"
        assert os.listdir(os.path.dirname(out)) == ["out.zt"], f"left behind: {os.listdir(os.path.dirname(out))}"
        assert contents(out) == old, "the old file is not as it was"
        stopped += 1
    assert stopped >= 2, f"only {stopped} runs were stopped"
    return f"{stopped} times"


@test
def an_interrupt_ends_it_and_leaves_the_old_file(folder):
    return interrupt(folder, signal.SIGINT)


@test
def a_request_to_end_is_obeyed_and_leaves_the_old_file(folder):
    return interrupt(folder, signal.SIGTERM)


@test
def a_hang_up_ends_it_and_leaves_the_old_file(folder):
    return interrupt(folder, signal.SIGHUP)


@test
def two_signals_in_a_row_leave_the_old_file_too(folder):
    command, out = prepare(folder)
    old = contents(out)
    process = subprocess.Popen(command)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == -signal.SIGINT
    assert contents(out) == old
    tenon("convert", "--quiet", out, out.replace("out.zt", "again.zt"))
    assert sorted(os.listdir(os.path.dirname(out))) == ["again.zt", "out.zt"]


@test
def a_hang_up_that_is_ignored_stays_ignored(folder):
    command, out = prepare(folder)
    command[command.index("zstd:7")] = "zstd:3"
    process = subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    time.sleep(0.05)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=60) == 0
    tenon("verify", out)


def slowest(folder):
    """A conversion whose compressor takes seconds for each call."""
    source, out = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out", "out.zt")
    os.mkdir(os.path.dirname(out))
    letters = bytes(i % 5 for i in range(256))
    write_safetensors(source, {"t": noise(8 * MIB).translate(letters), "u": noise(8 * MIB, 2).translate(letters)})
    return [TENON, "convert", "--jobs", "1", "--compress", "zstd:22", source, out], source, out


@test
def a_compressor_that_is_running_is_not_waited_for(folder):
    command, _, out = slowest(folder)
    process = subprocess.Popen(command)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert process.wait(timeout=60) == -signal.SIGINT
    assert os.listdir(os.path.dirname(out)) == [], os.listdir(os.path.dirname(out))
    return f"{time.monotonic() - began:.2f} s"


@test
def every_command_that_takes_long_ends_by_the_signal(folder):
    source = os.path.join(folder, "in.safetensors")
    write_safetensors(source, {f"t{i}": noise(8 * MIB, i) for i in range(24)})
    packed = os.path.join(folder, "in.zt")
    tenon("convert", "--quiet", "--compress", "zstd:1", "--checksum", "sha256", source, packed)
    ended = 0
    for command in (["verify", packed], ["stats", packed], ["diff", source, packed],
                    ["compare-types", packed, "--types", "mxfp4"]):
        process = subprocess.Popen([TENON, *command], stdout=subprocess.DEVNULL)
        time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=60)
        assert code == -signal.SIGTERM or code >= 0, f"{command[0]} ended with {code}"
        ended += code < 0
    assert ended >= 2, f"only {ended} were stopped"
    return f"{ended} of 4"


def drawings(process, master, wanted):
    """What a terminal shows until so many drawings of the bar came, or the end."""
    shown = b""
    while shown.count(b"\r[") < wanted:
        try:
            more = os.read(master, 4096)
        except OSError:         # the process has ended
            break
        if not more:
            break
        shown += more
    return shown.decode()


@test
def the_bar_moves_while_a_compressor_is_running(folder):
    command, _, _ = slowest(folder)
    master, slave = os.openpty()
    process = subprocess.Popen(command, stderr=slave, stdout=subprocess.DEVNULL)
    os.close(slave)
    shown = drawings(process, master, 4)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    bars = [text for text in shown.split("\r") if text.startswith("[")]
    assert len(bars) >= 3 and len(set(bars)) >= 2, bars
    assert all(" of 16.0 MiB" in bar for bar in bars[:-1]), bars
    return f"{len(bars)} drawings"


@test
def the_bar_counts_what_the_closing_line_counts(folder):
    command, out = prepare(folder)
    command.remove("--quiet")
    master, slave = os.openpty()
    process = subprocess.Popen(command, stderr=slave, stdout=subprocess.DEVNULL)
    os.close(slave)
    shown = drawings(process, master, 1 << 30)
    assert process.wait(timeout=60) == 0, shown
    closing = shown.strip().splitlines()[-1]
    bars = [text for text in shown.split("\r") if text.startswith("[")]
    assert "24 tensors, 48.0 MiB ->" in closing, closing
    assert all(" of 48.0 MiB" in bar for bar in bars), bars
    return f"{len(bars)} drawings"


run_tests()
