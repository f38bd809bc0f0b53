"""Lifetime, threads, leaks, errors and signals."""

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import tenon
from conftest import ROOT
from tenon import _core, _errors


def test_arrays_outlive_tensors_files_and_close(sample):
    f = tenon.open(sample)
    a = np.asarray(f["embed.weight"])
    view, part, capsule = (
        memoryview(f["norm.weight"]),
        f["embed.weight"][1:].numpy(),
        np.from_dlpack(f["norm.weight"]),
    )
    t, lazy = f["embed.weight"], f["embed.weight"].cast("f16")
    f.close()
    f.close()
    assert f.closed and repr(f) == "File(closed)" and repr(t) == "Tensor(of a closed file)"
    for closed in (
        lambda: f["norm.weight"],
        lambda: t.shape,
        lambda: np.asarray(t),
        lambda: list(f),
        lambda: len(f),
        lambda: f.metadata,
        lambda: lazy.numpy(),
        lambda: t[1:],
        lambda: t.cast("f16"),
        lambda: "x" in f,
        lambda: tenon.stats(f),
        lambda: tenon.save(sample, {"t": t}),
        lambda: memoryview(lazy),
        lambda: f.intact(),
        lambda: tenon.concat([t]),
        lambda: t.__dlpack__(),
    ):
        with pytest.raises(ValueError, match="closed file"):
            closed()
    del f, t, lazy
    gc.collect()
    assert a.sum() == 276 and view.tolist() == [1, 0.5, 2] and part[0, 0] == 6 and capsule[2] == 2


def test_a_file_that_is_cut_is_an_error(sample):
    with tenon.open(sample) as f:
        f.intact()
        os.truncate(sample, 100)
        with pytest.raises(tenon.FormatError):
            f["norm.weight"].numpy(copy=True)
            f.intact()


def test_eight_threads_on_one_file_and_a_close(tmp_path):
    arrays = {str(i): np.full((64, 64), i, "f4") for i in range(20)}
    tenon.save(tmp_path / "x.zt", arrays, compress="zstd")
    f = tenon.open(tmp_path / "x.zt")
    lazy = f["7"].cast("f16")
    wrong, closed = [], threading.Event()

    def work():
        try:
            while True:
                for name, expected in arrays.items():
                    if not np.array_equal(f[name].numpy(), expected) or lazy[1].numpy()[0] != 7:
                        wrong.append(name)
        except ValueError as end:
            if not closed.is_set() or "closed" not in str(end):
                wrong.append(end)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    threading.Event().wait(0.5)
    closed.set()
    f.close()
    for thread in threads:
        thread.join()
    assert not wrong


def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def each(sample, folder):
    """Everything once, right and wrong."""
    with tenon.open(sample) as f:
        names = [
            (name, t.dtype, t.shape, t.nbytes, t.metadata, t.parts, t.scaling, t.stored)
            for name, t in f.items()
        ]
        t = f["embed.weight"]
        (
            np.asarray(t),
            t.numpy(),
            memoryview(t),
            t.packed(),
            np.from_dlpack(t),
            t.values("bf16"),
            t[1:].cast("f16").numpy(),
        )
        (
            t.__dlpack__(),
            t.__dlpack__(max_version=(1, 0)),
            t.__dlpack__(copy=True),
            t.load(),
            tenon.concat([t, t]).numpy(),
        )
        tenon.save(folder / "x.zt", {"a": t, "b": t.quantize("mxfp4"), "c": np.ones(3)}, metadata={"k": "v"})
        tenon.quantize(t.numpy(), "mxfp4").values()
        tenon.cast(t.numpy(), "int4")
        (
            tenon.stats(f),
            tenon.verify(f),
            tenon.diff(f, f),
            tenon.compare_types(f, ["mxfp4"]),
            tenon.report(f, folder / "r.html", types=["mxfp4"], against=f, replace=True),
            tenon.check(tenon.describe(f)),
        )
        tenon.convert(f, folder / "y.zt", cast="mxfp4", report=True, replace=True)
        tenon.plan(f, folder / "z.zt", replace=True).pieces
    for wrong in (
        lambda: tenon.open(folder / "none"),
        lambda: tenon.open(b"abc"),
        lambda: t.shape,
        lambda: f["x"],
        lambda: tenon.convert(sample, folder / "y.zt"),
        lambda: tenon.open(sample)["norm.weight"].cast("x"),
        lambda: tenon.quantize(np.ones(3, "i4"), "mxfp4"),
        lambda: tenon.check("{"),
        lambda: tenon.open(7),
        lambda: tenon.save(folder / "w.zt", {"x": object()}),
        lambda: tenon.cast(np.ones(1), "x"),
        lambda: tenon.open(sample)["embed.weight"][9],
        lambda: _core.tensor("", "dense", "f4", (2,), (), None, None),
        lambda: tenon.open(sample)["norm.weight"].read_into(bytearray(1)),
        lambda: tenon.tensor(b"").cast("mxfp4"),
    ):
        with pytest.raises(Exception):
            wrong()
    return names


def test_nothing_leaks(sample, tmp_path):
    for _ in range(20):
        each(sample, tmp_path)
    gc.collect()
    before = rss()
    tracemalloc.start()
    first = tracemalloc.take_snapshot()
    for _ in range(60):
        each(sample, tmp_path)
    gc.collect()
    grown = sum(
        row.size_diff
        for row in tracemalloc.take_snapshot().compare_to(first, "filename")
        if "tracemalloc" not in row.traceback[0].filename
    )
    tracemalloc.stop()
    assert grown < 40_000 and rss() - before < 8 << 20


def test_opening_and_listing_does_not_grow(sample):
    def cycle(n):
        for _ in range(n):
            with tenon.open(sample) as f:
                list(f)

    cycle(500)
    before = rss()
    cycle(5000)
    assert rss() - before < 1 << 20


def test_every_status_and_reason_has_a_row():
    header = (ROOT / "include/tenon/error.h").read_text()
    statuses = {int(n) for n in re.findall(r"TN_ERR_\w+ += (\d+)", header)}
    reasons = {int(n) for n in re.findall(r"TN_REASON_\w+ += (\d+)", header)}
    assert statuses == set(_errors.CLASSES) and reasons == set(_errors.REASONS)
    for status in statuses:
        raised = _errors.make(status, 0, 5, "a/b", "t", "", "text", "a/b: byte 5: text")
        assert isinstance(raised, _errors.CLASSES[status])
        assert (raised.status, raised.offset, raised.path, raised.tensor) == (status, 5, "a/b", "t")
    assert isinstance(
        _errors.make(2, 0, None, "x", "", "", "cannot open: " + os.strerror(13), ""), PermissionError
    )
    assert "--" not in "".join(_errors.REASONS.values())


def test_exceptions_by_kind(tmp_path, sample):
    with pytest.raises(FileNotFoundError) as missing:
        tenon.open(tmp_path / "none")
    assert missing.value.status == 2 and missing.value.filename == str(tmp_path / "none")
    (tmp_path / "cut").write_bytes(sample.read_bytes()[:50])
    with pytest.raises(tenon.FormatError) as cut:
        tenon.open(tmp_path / "cut")
    assert isinstance(cut.value, ValueError) and cut.value.path == str(tmp_path / "cut")
    with pytest.raises(tenon.UnsupportedError):
        tenon.open(b"no container at all, but some text")
    with pytest.raises(IsADirectoryError if False else OSError):
        tenon.open(tmp_path)


INTERRUPTED = """
import os, signal, sys, threading, time, tenon
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have ignored for us
def stop():
    started.wait()
    global began
    began = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
started = threading.Event()
threading.Thread(target=stop).start()
try:
    tenon.convert(sys.argv[1], sys.argv[2], compress="zstd:19", checksum="sha256",
                  progress=lambda done, total: started.set())
except KeyboardInterrupt:
    print(time.monotonic() - began)
    print(os.listdir(os.path.dirname(sys.argv[2])))
"""


def test_ctrl_c_ends_a_conversion_and_leaves_nothing(tmp_path, random):
    (tmp_path / "out").mkdir()
    tenon.save(tmp_path / "big.zt", {str(i): random.integers(0, 50, 1 << 20, "u1") for i in range(24)})
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, tmp_path / "big.zt", tmp_path / "out" / "x.zt"],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    seconds, left = done.stdout.splitlines()
    print(f"Ctrl-C to KeyboardInterrupt: {float(seconds):.3f} s")
    assert left == "[]"


def test_the_gil_is_free_while_the_library_works(tmp_path, random):
    tenon.save(tmp_path / "big.zt", {str(i): random.integers(0, 50, 1 << 20, "u1") for i in range(4)})
    counted, working = 0, threading.Event()

    def count():
        nonlocal counted
        while not working.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    tenon.convert(tmp_path / "big.zt", tmp_path / "x.zt", compress="zstd:12", jobs=1)
    working.set()
    thread.join()
    assert counted > 1000


def test_arguments_of_wrong_types_are_refused(sample):
    f = tenon.open(sample)
    t = f["norm.weight"]
    for call in (
        lambda: _core.stats(5, None, 0, None),
        lambda: _core.convert(f._home, "text", {}, False, None),
        lambda: _core.convert(f._home, b"x", [], False, None),
        lambda: _core.save(b"x", ("a",), (5,), (), {}, None),
        lambda: _core.diff(f._home, None, False, None, None, 0, 0, 0, None),
        lambda: _core.concat((5,), ""),
        lambda: _core.File(_core, "path", 5, None, 0, 0),
        lambda: _core.from_dlpack(5),
        lambda: t._step(5, ""),
        lambda: t._step("slice", "0:1", (1, 1), 99),
        lambda: t._step("slice", "0:1", (1,), 99),
        lambda: t._part(7),
        lambda: t._part_info(7),
        lambda: t.read_into(b"12"),
        lambda: _core.Plan(_core, 5, b"", {}),
        lambda: _core.unpack(bytearray(3), b"1", 4, False),
        lambda: _core.pack(bytearray(3), b"1", 4),
        lambda: _core.tensor("", "dense", "f4", (2,), (("data", "f4", (2,), b"123"),), None, None),
        lambda: _core.Offer(_core, b"x", 5),
        lambda: _core.type_name("a\0b"),
        lambda: _core.cast(*[None] * 11),
    ):
        with pytest.raises((TypeError, ValueError, IndexError, BufferError, SystemError)):
            call()


def test_sharing_between_processes(tmp_path):
    array = np.arange(12, dtype="f4").reshape(3, 4)
    code = (
        "import sys, tenon\nx = tenon.attach(sys.argv[1])['x']\na = x.numpy()\nassert a.sum() == 66\n"
        "assert x.is_view\na[2, 3] = 100\n"
    )
    with tenon.serve(tmp_path / "socket", {"x": array}, writable=True) as server:
        subprocess.run([sys.executable, "-c", code, tmp_path / "socket"], check=True)
        assert server["x"].numpy()[2, 3] == 100 and array[2, 3] == 11
    with pytest.raises(OSError):
        tenon.attach(tmp_path / "socket")
    with tenon.serve(tmp_path / "socket", {"x": array}):
        mine = tenon.attach(tmp_path / "socket")["x"].numpy()
    assert not mine.flags.writeable and mine.sum() == 66


def test_files_are_shared(sample, tmp_path):
    with tenon.serve(tmp_path / "socket", [sample]):
        f = tenon.attach(tmp_path / "socket")[sample.name]
    assert f["norm.weight"].tolist() == [1, 0.5, 2] and f["norm.weight"].is_view
    a = f["embed.weight"].numpy()
    f.close()
    del f
    assert a.sum() == 276


def test_subinterpreters_have_their_own_module(sample):
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        interpreters = pytest.importorskip("_interpreters")
    made = interpreters.create()
    interpreters.run_string(
        made,
        f"import tenon\nf = tenon.open({str(sample)!r})\n"
        "assert memoryview(f['norm.weight']).tolist() == [1, 0.5, 2]\n"
        "tenon.convert(f, '/dev/null') if False else tenon.stats(f)\n",
    )
    interpreters.destroy(made)
