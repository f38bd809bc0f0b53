"""Plans with a work folder: pieces made by other threads and processes, and by engines."""

import concurrent.futures
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import time
import types
import warnings

import numpy as np
import pytest

import tenon

TOOL = str(pathlib.Path(tenon.__file__).parent / "bin" / "tenon")
KINDS = [
    {"cast": "bf16", "checksum": "crc32c"},
    {"compress": "zstd", "checksum": "sha256"},
    {"shard_size": "100kB"},
    {"cast": "*weight=mxfp4"},
    {"cast": "int8,per=tensor"},
]


@pytest.fixture
def model(tmp_path, random):
    path = tmp_path / "model.safetensors"
    values = {f"{i}.weight": random.standard_normal((64, 128)).astype("f4") for i in range(12)}
    tenon.save(path, values | {"norm": np.ones(64, "f4")}, metadata={"made by": "a test"})
    return path


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def names(options):
    return "out.safetensors" if "shard_size" in options else "out.zt"


def shared(model, folder, **options):
    return tenon.plan(model, folder / names(options), work=True, piece_size="50kB", **options)


def reference(model, folder, **options):
    (folder / "one").mkdir()
    tenon.convert(model, folder / "one" / names(options), **options)
    return contents(folder / "one")


def pool(kind):
    if kind == "threads":
        return concurrent.futures.ThreadPoolExecutor(3)
    return concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(kind))


@pytest.mark.parametrize("kind", ["threads", "spawn", "forkserver"])
def test_an_engine_writes_what_one_process_writes(model, tmp_path, kind):
    for k, options in enumerate(KINDS if kind != "forkserver" else KINDS[:1]):
        folder = tmp_path / str(k)
        folder.mkdir()
        expected = reference(model, folder, **options)
        (folder / "out").mkdir()
        plan = shared(model, folder / "out", **options)
        assert len(plan) > 1 and plan.state.pieces == len(plan) and not contents(folder / "out")
        told = []
        with pool(kind) as engine:
            done = tenon.distributed.run(plan, engine, progress=lambda *counts: told.append(counts))
        assert contents(folder / "out") == expected and done.file == plan.path and done.bytes_out
        assert not os.path.exists(plan.folder)
        total = sum(piece.bytes_written for piece in plan.pieces)
        assert len(told) == len(plan) and told[-1] == (total, total)


def test_a_fork_makes_pieces_of_a_plan_that_its_parent_has_used(model, tmp_path):
    expected = reference(model, tmp_path, cast="bf16")
    plan = shared(model, tmp_path, cast="bf16")
    plan.run(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks where there are threads
        children = [multiprocessing.get_context("fork").Process(target=plan.run, args=(i,)) for i in (1, 2)]
        for child in children:
            child.start()
    for child in children:
        child.join(20)
    assert [child.exitcode for child in children] == [0, 0] and plan.state.made == 3
    for i in range(3, len(plan)):
        plan.run(i)
    plan.finish()
    assert (tmp_path / "out.zt").read_bytes() == expected["out.zt"]


def test_it_is_pickled_as_the_path_of_its_folder(model, tmp_path):
    expected = reference(model, tmp_path, cast="bf16")
    plan = shared(model, tmp_path, cast="bf16")
    text = pickle.dumps(plan.run)
    assert len(text) < 1000 and plan.folder.encode() in text
    run = pickle.loads(text)
    for i in reversed(range(len(plan))):
        run(i)
    again = pickle.loads(pickle.dumps(plan))
    assert (again.path, len(again), again.pieces) == (plan.path, len(plan), plan.pieces)
    assert again.state == plan.state and again.state.made == len(plan)
    again.finish()
    assert (tmp_path / "out.zt").read_bytes() == expected["out.zt"]


def times(plan):
    return {p.name: p.stat().st_mtime_ns for p in pathlib.Path(plan.folder, "pieces").glob("*.done")}


def test_a_piece_that_is_made_returns_at_once(model, tmp_path):
    plan = shared(model, tmp_path, compress="zstd")
    for i in range(len(plan)):
        plan.run(i)
    before, began = times(plan), time.monotonic()
    for i in range(len(plan)):
        plan.run(i)
    assert times(plan) == before and len(before) == len(plan)
    assert time.monotonic() - began < 2
    plan.finish()


def test_pieces_that_are_missing_are_counted(model, tmp_path):
    plan = shared(model, tmp_path, cast="bf16")
    plan.run(1)
    with pytest.raises(tenon.ArgumentError, match=f"{len(plan) - 1} of {len(plan)} pieces are missing"):
        plan.finish()
    with pytest.raises(tenon.ArgumentError):
        plan.run(len(plan))
    plan.run(0)
    assert plan.state.made == 2


def die(plan, piece):
    plan.run(piece)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_costs_nothing_that_was_made(model, tmp_path):
    expected = reference(model, tmp_path, cast="bf16")
    plan = shared(model, tmp_path, cast="bf16")
    with pool("spawn") as engine:
        engine.submit(plan.run, 0).result()
        with pytest.raises(concurrent.futures.process.BrokenProcessPool):
            engine.submit(die, plan, 1).result()
        with pytest.raises(concurrent.futures.process.BrokenProcessPool):
            tenon.distributed.run(plan, engine)
    before = times(plan)
    assert len(before) >= 2 and not (tmp_path / "out.zt").exists()
    resumed = shared(model, tmp_path, cast="bf16")
    assert resumed.folder == plan.folder
    with pool("spawn") as engine:
        for i in range(len(plan)):
            engine.submit(resumed.run, i)
    after = times(plan)
    assert len(after) == len(plan) and after.items() >= before.items()
    resumed.finish()
    assert (tmp_path / "out.zt").read_bytes() == expected["out.zt"]


def hold(plan, piece, path):
    """Makes a piece, which takes long, and says before that it begins."""
    path.touch()
    plan.run(piece)


def test_a_piece_of_a_killed_process_is_taken_over(tmp_path, random):
    source, ready = tmp_path / "large.safetensors", tmp_path / "ready"
    tenon.save(source, {"w": random.standard_normal((3000, 1000)).astype("f4")})
    plan = tenon.plan(source, tmp_path / "out.zt", compress="zstd:19", work=True, jobs=1)
    child = multiprocessing.get_context("spawn").Process(target=hold, args=(plan, 0, ready))
    child.start()
    while not plan.state.held:
        assert child.is_alive()
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGSTOP)
    while not plan.state.holders[0].stopped:
        time.sleep(0.01)
    holder = plan.state.holders[0]
    assert ready.exists() and (holder.piece, holder.pid, holder.stopped) == (0, child.pid, True)
    with pytest.raises(OSError, match="1 process is working there"):
        plan.abandon()
    with concurrent.futures.ThreadPoolExecutor() as threads:
        with pytest.warns(UserWarning, match=f"waiting for process {child.pid} .* is stopped"):
            waiting = threads.submit(plan.run, 0)
            time.sleep(4)
            assert not waiting.done()
            child.kill()
            waiting.result(60)
    child.join()
    plan.finish()


def test_the_error_of_a_piece_is_raised_and_the_work_can_be_tried_again(model, tmp_path):
    bad = tmp_path / "bad.zt"
    tenon.convert(model, bad, compress="zstd")
    at = tenon.open(bad)["3.weight"].stored.offset
    with open(bad, "r+b") as file:
        file.seek(at)
        file.write(b"this is no frame of zstd")
    plan = shared(bad, tmp_path, cast="f16", compress="none")
    for engine in (pool("threads"), pool("spawn")):
        with engine, pytest.raises(tenon.FormatError, match="3.weight") as problem:
            tenon.distributed.run(plan, engine)
        assert problem.value.tensor == "3.weight" and problem.value.path == str(bad)
        assert not (tmp_path / "out.zt").exists()
    assert plan.state.made < len(plan)
    plan.abandon()
    assert not os.path.exists(plan.folder)


def test_a_loss_is_refused_when_all_is_known(tmp_path):
    source = tmp_path / "large.safetensors"
    tenon.save(source, {"ok": np.ones((64, 200), "f4"), "large": np.full((64, 200), 1e30, "f4")})
    plan = tenon.plan(source, tmp_path / "out.zt", cast="f16", strict=True, work=True, piece_size="20kB")
    for _ in range(2):
        with pool("threads") as engine, pytest.raises(tenon.LossError, match="large"):
            tenon.distributed.run(plan, engine)
    assert not (tmp_path / "out.zt").exists()
    plan.abandon()


def test_an_input_that_has_changed_is_refused_by_workers(model, tmp_path):
    plan = shared(model, tmp_path, cast="bf16")
    tenon.save(model, {"norm": np.ones(64, "f4")})
    with pool("spawn") as engine, pytest.raises(tenon.ChangedError):
        engine.submit(plan.run, 0).result()
    with pytest.raises(tenon.ChangedError):
        tenon.Plan.open(plan.folder)


def test_other_arguments_are_refused_with_the_difference(model, tmp_path):
    plan = shared(model, tmp_path, cast="bf16")
    with pytest.raises(tenon.ChangedError, match="bf16"):
        shared(model, tmp_path, cast="f16")
    plan.abandon()
    shared(model, tmp_path, cast="f16").abandon()


def test_the_tool_and_python_work_on_the_same_folder(model, tmp_path):
    expected = reference(model, tmp_path, cast="bf16")
    plan = shared(model, tmp_path, cast="bf16")
    subprocess.run([TOOL, "run", "-q", plan.folder, "--piece", "0-2"], check=True)
    assert plan.state.made == 3
    tenon.Plan.open(plan.folder).run(3)
    subprocess.run([TOOL, "run", "-q", plan.folder], check=True)
    plan.finish()
    assert (tmp_path / "out.zt").read_bytes() == expected["out.zt"]
    subprocess.run(
        [TOOL, "plan", "-q", model, tmp_path / "b.zt", "--cast", "bf16", "--work", tmp_path / "w"], check=True
    )
    other = tenon.Plan.open(tmp_path / "w")
    with pool("threads") as engine:
        tenon.distributed.run(other, engine)
    assert (tmp_path / "b.zt").read_bytes() == expected["out.zt"] and not (tmp_path / "w").exists()


def test_what_python_began_the_same_command_of_the_shell_goes_on_with_and_the_other_way_round(model, tmp_path):
    for k, options in enumerate(KINDS):
        folder = tmp_path / str(k)
        folder.mkdir()
        expected = reference(model, folder, **options)
        words = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", value)]
        words = [model, folder / names(options), "-q", "--piece-size", "50000", *words]
        words = ["100000" if word == "100kB" else word for word in words]
        plan = shared(model, folder, **options)
        plan.run(1)
        subprocess.run([TOOL, "convert", "--together", *words], check=True)
        assert not os.path.exists(plan.folder)
        for name, content in expected.items():
            assert (folder / name).read_bytes() == content
            (folder / name).unlink()
        subprocess.run([TOOL, "plan", *words], check=True)
        subprocess.run([TOOL, "run", "-q", plan.folder, "--piece", "1"], check=True)
        plan = shared(model, folder, **options)
        assert plan.state.made == 1
        with pool("threads") as engine:
            tenon.distributed.run(plan, engine)
        assert contents(folder) == expected


def test_a_new_plan_at_the_path_of_an_old_one_is_another(model, tmp_path):
    with pool("threads") as engine:
        for cast in ("bf16", "f16", "bf16"):
            tenon.convert(model, tmp_path / "one.zt", cast=cast, replace=True)
            tenon.distributed.run(shared(model, tmp_path, cast=cast, replace=True), engine)
            assert (tmp_path / "out.zt").read_bytes() == (tmp_path / "one.zt").read_bytes()


def test_an_idle_process_leaves_the_folder(model, tmp_path):
    plan = shared(model, tmp_path, cast="bf16")
    with pool("spawn") as engine:
        engine.submit(plan.run, 0).result()
        until = time.monotonic() + 20
        while plan.state.processes and time.monotonic() < until:
            time.sleep(0.05)
        plan.abandon()
    assert not os.path.exists(plan.folder)


def test_a_plan_without_a_folder_is_not_shared(model, tmp_path):
    plan = tenon.plan(model, tmp_path / "out.zt")
    for use in (lambda: plan.state, lambda: tenon.distributed.run(plan, pool("threads"))):
        with pytest.raises(ValueError, match="work=True"):
            use()
    assert plan.folder is None
    plan.run(0)
    plan.abandon()
    with pytest.raises(tenon.ArgumentError, match="finished"):
        plan.finish()
    assert sorted(os.listdir(tmp_path)) == ["example.safetensors", "model.safetensors"]


def test_engines_are_told_by_what_they_have(model, tmp_path):
    expected = reference(model, tmp_path, cast="bf16")
    threads = pool("threads")
    dask = types.SimpleNamespace(get_executor=lambda: threads)
    ray = types.SimpleNamespace(
        remote=lambda f: types.SimpleNamespace(
            remote=lambda *args: types.SimpleNamespace(future=lambda: threads.submit(f, *args))
        )
    )
    for engine in (dask, ray):
        tenon.distributed.run(shared(model, tmp_path, cast="bf16", replace=True), engine)
        assert (tmp_path / "out.zt").read_bytes() == expected["out.zt"]
    with pytest.raises(TypeError, match="expected an executor"):
        tenon.distributed.run(shared(model, tmp_path, cast="bf16", replace=True), 3)


def test_a_plan_takes_all_that_a_conversion_takes(model, tmp_path):
    given = {"cast": "*weight=fp8_e4m3", "round": "zero", "overflow": "nan"}
    tenon.convert(model, tmp_path / "one.zt", **given)
    plan = tenon.plan(model, tmp_path / "two.zt", **given)
    for i in range(len(plan)):
        plan.run(i)
    plan.finish()
    assert (tmp_path / "one.zt").read_bytes() == (tmp_path / "two.zt").read_bytes()
