"""tests.py TENON TOOLS [--all[=K/N]] [-v] [WORD...] - one conversion by many processes.

--all: kill at each system call of a run, not at a sample of them; K/N: at every Nth from the Kth on, K from 0.
WORD: only tests whose name has one of these.

Every output is compared with that of "tenon convert" by one process, file by file.  TOOLS has trace and
inject.so of tests/faults and locks.so.
"""
import fcntl
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import hosts                            # the tests of all three register themselves
import objects
import results
from support import (ENVIRONMENT, INPUT, ROOM, SMALL, TENON, TOOLS, Case, begin, contents, crc32c, damage, end,
                     kills, main, tells, test, tool, write_input, write_tensors)


def cases():
    return [
        Case("out.safetensors"),
        Case("out.zt", "--cast", "bf16", "--checksum", "crc32c"),
        Case("out.zt", "--checksum", "sha256"),
        Case("out.zt", "--compress", "zstd", "--checksum", "crc32c"),
        Case("out.safetensors", "--shard-size", "400K"),
        Case("out.safetensors", "--shard-size", "300K", "--cast", "[lhe]*=mxfp4"),
        Case("out.zt", "--cast", "int8,per=tensor"),
        Case("out.zt", "--cast", "*weight=int8,per=channel,axis=0", "--compress", "zstd"),
        Case("out.zt", "--cast", "*weight=nvfp4", "--checksum", "sha256"),
        Case("out.gguf", "--cast", "embedding=q4_K", "--cast", "head=q8_0"),
        Case("out.zt", "--form", "coo,threshold=1"),
        Case("out.npz", "--compress", "deflate"),
        Case("out.safetensors", "--transpose", "embedding=1,0", "--cast", "head=fp8_e4m3"),
    ]


# ---- the same bytes ----

@test
def any_number_of_processes_at_once_writes_what_one_writes():
    for case in cases():
        for n in (1, 2, 3, 8):
            case.reset()
            end([begin(*case.command("--ranks", f"{i}/{n}")) for i in range(n)])
            case.is_right(f"{case.options} by {n}")


@test
def processes_one_after_the_other_and_any_number_of_threads_write_the_same():
    for k, case in enumerate(cases()):
        case.plan()
        pieces = list(range(len(case.pieces())))
        random.Random(k).shuffle(pieces)
        for i, piece in enumerate(pieces):
            if i % 3 == 0 and i < 9:
                tool("run", case.work, "--piece", piece, "-q", "-j", 1 + i % 4)
        tool("run", case.work, "-q", "-j", 1 + k % 3)
        tool("finish", case.work, "-q")
        case.is_right(str(case.options))


@test
def tied_tensors_stay_tied():
    source = pathlib.Path(__file__).parent.parent / "golden/pytorch/v2.15/tied_params.pt"
    for name in ("out.zt", "out.safetensors", "out.gguf"):
        case = Case(name, "--drop-metadata", source=source)
        for n in (1, 2, 3, 8):
            case.reset()
            end([begin(*case.command("--ranks", f"{i}/{n}")) for i in range(n)])
            case.is_right(f"{name} by {n}")


@test
def an_output_that_is_there_is_replaced_with_force_only():
    case = Case("out.zt", "--cast", "bf16", source=SMALL)
    case.out.write_text("old")
    os.chmod(case.out, 0o640)
    end([begin(*case.command("--ranks", f"{i}/2")) for i in range(2)], codes=(2,))
    assert case.out.read_text() == "old"
    end([begin(*case.command("--force", "--ranks", f"{i}/2")) for i in range(2)])
    case.is_right()
    assert os.stat(case.out).st_mode & 0o777 == 0o640


@test
def the_input_can_be_the_output():
    case = Case("out.safetensors", "--cast", "bf16", source=SMALL)
    shutil.copy(SMALL, case.out)
    case.source = case.out
    tool(*case.command("--force"))
    case.is_right()


@test
def a_rank_that_comes_late_finds_the_work_done():
    for name, options in (("out.zt", ("--cast", "bf16")), ("out.safetensors", ("--shard-size", "100K"))):
        case = Case(name, *options, source=SMALL)
        tool(*case.command("--ranks", "0/3"))
        assert contents(case.folder) == case.reference
        tool(*case.command("--ranks", "2/3"))
        assert case.work.exists()
        tool(*case.command("--ranks", "1/3"))
        case.is_right(name)


@test
def a_rank_that_was_killed_finds_what_the_others_have_finished():
    case = big_case()
    processes = [begin(*case.command("--ranks", f"{i}/3", "-j", "1")) for i in range(3)]
    until = time.monotonic() + 30
    while len(list(case.work.glob("pieces/*.done"))) < 3 and time.monotonic() < until:
        time.sleep(0.002)
    processes[1].kill()
    end([processes[0], processes[2]])
    processes[1].communicate()
    assert case.out.read_bytes() == case.reference["out.zt"]
    tool(*case.command("--ranks", "1/3"))
    case.is_right()


@test
def a_late_process_without_a_rank_is_told_what_it_found():
    case = Case("out.zt", source=SMALL)
    tool(*case.command())
    done = tool(*case.command(), code=2)
    assert "nothing is left to do: with --ranks" in done.stderr and "--force" in done.stderr, done.stderr
    case.is_right()


@test
def launchers_are_only_asked_with_together():
    case = Case("out.zt", "--cast", "bf16", source=SMALL)
    tool("convert", SMALL, case.out, "-q", "--cast", "bf16", env={"SLURM_PROCID": "3", "SLURM_NTASKS": "8"})
    case.is_right()
    for env in ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, {"PMI_RANK": "1", "PMI_SIZE": "2"},
                {"SLURM_ARRAY_TASK_ID": "8", "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "7"},
                {"JOB_COMPLETION_INDEX": "1", "TENON_RANKS": "2"}, {"TENON_RANK": "1", "TENON_RANKS": "2"}):
        case.reset()
        tool(*case.command(), env=env)
        assert os.listdir(case.work / "ranks") == ["1"], env


@test
def a_rank_that_comes_late_does_not_convert_the_output_again():
    for options in (("--add", "*bias=1"), ("--rename", "odd=even")):
        case = Case("out.safetensors", *options, source=SMALL)
        case.source = case.out
        for rounds in (1, 2):           # what was done in place can be done again, by all ranks
            shutil.copy(SMALL, case.out)
            for rank in (0, 1, 2):
                tool(*case.command("--force", "--ranks", f"{rank}/3"))
            case.is_right(f"{options}, round {rounds}")


@test
def finishing_does_not_wait_for_ranks():
    case = Case("out.zt", source=SMALL)
    case.plan()
    launcher = {"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}
    tool("run", case.work, "-q", env=launcher)
    tool("finish", case.work, "-q", env=launcher)
    case.is_right()


# ---- going on ----

@test
def a_conversion_that_was_interrupted_goes_on_with_the_same_command():
    case = Case("out.zt", "--cast", "bf16", "--checksum", "crc32c")
    case.plan()
    tool("run", case.work, "--piece", "0-2", "-q")
    before = {p.name: p.stat().st_mtime_ns for p in (case.work / "pieces").glob("*.done")}
    assert len(before) == 3
    tool("run", case.work, "--piece", "1", "-q")
    after = {p.name: p.stat().st_mtime_ns for p in (case.work / "pieces").glob("*.done")}
    assert after == before, "a piece was made again"
    state = json.loads(tool("ls", "--json", case.work).stdout)
    assert (state["pieces_made"], state["published"]) == (3, False)
    tool(*case.command())
    case.is_right()


def recorded(case):
    """The file with the bytes of each piece that is made, whether it is synced or not."""
    found = {}
    for path in [*case.work.glob("pieces/*.done"), *case.work.glob("pieces/*.made-*")]:
        try:
            found[path.name[:5]] = os.stat(case.work / f"pieces/{path.name[:5]}.part").st_ino
        except FileNotFoundError:       # it has none, or the folder is being removed
            found[path.name[:5]] = 0
    return found


def wait_for_records(case, process, count):
    until = time.monotonic() + 30
    while len(recorded(case)) < count and process.poll() is None and time.monotonic() < until:
        time.sleep(0.001)


@test
def one_process_that_is_interrupted_goes_on_with_the_same_command():
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        case = big_case()
        command = [*case.command("-j", "1")]
        case.plan()
        costs = [piece["written"] for piece in case.pieces()]
        late = sorted(range(len(costs)), key=lambda i: (-(costs[i] // 400000), i))[6]
        process = begin(*command, env=preloaded(SLOW=f"{late:05}.={ROOM / 'never'}"))      # waits there
        wait_for_records(case, process, 3)
        process.send_signal(sent)
        process.communicate(timeout=60)
        before = recorded(case)
        assert process.returncode == -sent and len(before) >= 3 and not case.out.exists(), (sent, process.returncode, before)
        second = begin(*command)
        wait_for_records(case, second, len(before) + 1)
        second.send_signal(signal.SIGKILL)
        second.communicate(timeout=60)
        after = recorded(case)
        assert not after or {n: after[n] for n in before} == before, "a piece was made again"
        tool(*command, code=None if case.out.exists() else 0)
        case.is_right(str(sent))


@test
def finishing_needs_all_pieces():
    case = Case("out.zt", source=SMALL)
    case.plan()
    done = tool("finish", case.work, code=1)
    assert "pieces are missing: \"tenon run\" makes them" in done.stderr, done.stderr
    tool("run", case.work, "-q")
    assert sorted(os.listdir(case.folder)) == ["out.zt.tenon"]
    tool("finish", case.work, "-q")
    case.is_right()
    assert "expected a work folder" in tool("finish", case.work, code=1).stderr


@test
def abandoning_leaves_the_output_as_it_was():
    case = Case("out.zt", source=SMALL)
    case.plan()
    tool("run", case.work, "--piece", "0", "-q")
    tool("abandon", case.work)
    assert os.listdir(case.folder) == []
    other = ROOM / "no-work"
    other.mkdir()
    (other / "file").write_text("mine")
    assert "expected a work folder" in tool("abandon", other, code=1).stderr
    assert (other / "file").read_text() == "mine"


@test
def the_work_folder_can_be_elsewhere():
    case = Case("out.zt", source=SMALL)
    work = ROOM / "elsewhere"
    tool(*case.command("--work", work))
    case.is_right()
    assert not work.exists()


@test
def a_plan_is_run_from_another_folder():
    case = Case("out.zt", "--cast", "bf16", source=SMALL)
    shutil.copy(SMALL, case.folder / "in.safetensors")
    tool("plan", "in.safetensors", "out.zt", "--cast", "bf16", "-q", cwd=case.folder)
    tool("run", case.work, "-q", cwd="/")
    tool("finish", case.work, "-q", cwd="/")
    os.unlink(case.folder / "in.safetensors")
    case.is_right()


@test
def a_folder_with_other_files_is_no_work_folder_and_keeps_them():
    case = Case("out.zt", source=SMALL)
    for i, name in enumerate(("notes.txt", "files/data", ".hidden")):
        mine = ROOM / f"mine{i}"
        (mine / name).parent.mkdir(parents=True)
        (mine / name).write_text("mine")
        for command in (case.command("--work", mine), ["plan", SMALL, case.out, "--work", mine]):
            assert "other files" in tool(*command, code=1).stderr
        assert [p.read_text() for p in mine.rglob("*") if p.is_file()] == ["mine"], os.listdir(mine)
    empty = ROOM / "empty"
    empty.mkdir()
    tool(*case.command("--work", empty))
    case.is_right()


@test
def files_that_somebody_puts_into_a_work_folder_stay():
    case = Case("out.zt", source=SMALL)
    for end_it in ("finish", "abandon"):
        case.plan()
        tool("run", case.work, "-q")
        (case.work / "notes.txt").write_text("mine")
        (case.work / "more").mkdir()
        done = tool(end_it, case.work, code=None)
        assert "other files" in done.stderr, done.stderr
        assert sorted(os.listdir(case.work)) == ["more", "notes.txt"], os.listdir(case.work)
        assert case.out.exists() == (end_it == "finish")
        assert not case.out.exists() or case.out.read_bytes() == case.reference["out.zt"]
        case.reset()


def published(case):
    """As if the process that published had been killed before it removed the folder."""
    case.plan()
    tool("run", case.work, "-q")
    kept = case.folder / "kept"
    shutil.copytree(case.work, kept, copy_function=os.link)
    tool("finish", case.work, "-q")
    kept.rename(case.work)


@test
def a_published_folder_is_not_taken_for_another_conversion():
    case = Case("out.safetensors", "--shard-size", "100K", source=SMALL)
    published(case)
    tool(*case.command())
    case.is_right("the same command, shards")
    case = Case("out.zt", "--cast", "bf16", source=SMALL)
    published(case)
    assert json.loads(tool("ls", "--json", case.work).stdout)["published"]
    tool(*case.command())
    case.is_right("the same command")
    case.reset()
    other = Case("out.zt", "--cast", "f16", source=SMALL)
    other.folder.mkdir(exist_ok=True)
    published(case)
    tool("convert", "--together", SMALL, case.out, "-q", "--cast", "f16", "--force")
    assert case.out.read_bytes() == other.reference["out.zt"]
    assert not case.work.exists()


@test
def abandoning_leaves_an_output_that_was_renamed():
    for name, options in (("out.zt", ()), ("out.safetensors", ("--shard-size", "100K"))):
        case = Case(name, *options, source=SMALL)
        published(case)
        head = case.out if case.out.exists() else next(case.folder.glob("*.json"))
        head.rename(case.folder / "renamed")
        tool("abandon", case.work)
        found = contents(case.folder)
        assert found.pop("renamed") == case.reference[head.name]
        assert found == {k: v for k, v in case.reference.items() if k != head.name}, sorted(found)


# ---- refusing ----

@test
def another_plan_is_refused_with_the_difference():
    case = Case("out.zt", "--cast", "bf16", source=SMALL)
    case.plan()
    done = tool("convert", "--together", SMALL, case.out, "--cast", "f16", "--piece-size", "200K", code=3)
    assert "options are not what they were" in done.stderr and "bf16" in done.stderr, done.stderr
    plan = case.work / "plan.json"
    text = plan.read_text()
    version = json.loads(text)["tenon"]
    plan.write_text(text.replace(f'"tenon":"{version}"', '"tenon":"0.0.1"'))
    for command in (case.command(), ["run", case.work], ["finish", case.work]):
        done = tool(*command, code=3)
        assert "0.0.1" in done.stderr and version in done.stderr, done.stderr
    plan.write_text(text)
    tool(*case.command())
    case.is_right()


@test
def another_input_is_refused():
    source = ROOM / "changing.safetensors"
    write_input(source, rows=80)
    case = Case("out.zt", "--cast", "bf16", source=source)
    case.plan()
    tool("run", case.work, "--piece", "0", "-q")
    write_input(source, rows=80, change=1)
    for command in (case.command(), ["run", case.work], ["finish", case.work]):
        done = tool(*command, code=3)
        assert "the input is not what it was" in done.stderr, done.stderr
    case.is_untouched()


@test
def other_importance_data_is_refused():
    data = ROOM / "importance.safetensors"
    case = Case("out.gguf", source=SMALL)
    command = ["convert", "--together", SMALL, case.out, "-q", "--cast", f"embedding=q4_K,importance={data}"]
    sums = {"embedding.in_sum2": [1, 512], "embedding.counts": [1, 1]}
    for value in (1, 2):
        write_tensors(data, {name: (shape, value) for name, shape in sums.items()})
        if value == 1:
            tool("plan", *command[2:])
    assert "input is not what it was" in tool(*command, code=3).stderr
    assert "input is not what it was" in tool("run", case.work, code=3).stderr
    looks = ["compare-types", SMALL, "--types", "q4_K", "--importance", data, "--together", "--work", ROOM / "types",
             "--ranks", "0/2"]
    tool(*looks)
    (ROOM / "types/published").unlink()
    write_tensors(data, {name: (shape, 3) for name, shape in sums.items()})
    assert "input is not what it was" in tool(*looks, code=3).stderr
    tool("abandon", case.work, ROOM / "types")


@test
def without_standard_output_nothing_is_written_elsewhere():
    case = Case("out.zt", source=SMALL)
    for words in (["verify", SMALL], ["verify", SMALL, "--together"]):
        done = tool(*words, code=3, preexec_fn=lambda: os.close(1))
        assert "cannot write" in done.stderr, done.stderr
    tool("verify", SMALL, "--together")
    assert not pathlib.Path(f"{SMALL}.verify.tenon").exists()
    tool("convert", SMALL, case.out, preexec_fn=lambda: (os.close(1), os.close(2)))
    case.is_right("without standard output")


@test
def pipes_are_refused():
    assert "several processes" in tool("convert", "--together", SMALL, "-", "--to", "ztensor", code=2).stderr
    assert "--work needs --together" in tool("convert", SMALL, ROOM / "x.zt", "--work", "x", code=2).stderr


@test
def records_that_a_crash_cut_short_are_made_again():
    case = Case("out.zt", "--compress", "zstd", "--checksum", "crc32c", source=SMALL)
    case.plan()
    tool("run", case.work, "-q")
    records = sorted((case.work / "pieces").glob("*.done"))
    damage(records[0], lambda d: d.__delitem__(slice(len(d) // 2, None)))
    damage(records[1], lambda d: d.__setitem__(slice(None), b"\0" * len(d)))
    tool(*case.command())
    case.is_right()


@test
def a_record_whose_data_a_crash_took_is_made_again():
    for i, command in enumerate((["finish", "-q"], ["run", "-q"], None)):
        case = Case("out.zt", "--compress", "zstd", "--checksum", "crc32c", source=SMALL)
        case.plan()
        tool("run", case.work, "-q")
        parts = sorted((case.work / "pieces").glob("*.part"))
        parts[0].unlink()
        os.truncate(parts[1], 10)
        if command:
            tool(command[0], case.work, *command[1:])
        if i == 1:
            tool("finish", case.work, "-q")
        if i == 2:
            tool(*case.command())
        case.is_right(str(command))


@test
def a_folder_on_another_file_system_is_refused_and_does_not_stay():
    other = next((f for f in map(pathlib.Path, ("/dev/shm", "/run", "/var/tmp"))
                  if os.access(f, os.W_OK) and f.stat().st_dev != ROOM.stat().st_dev), None)
    if not other:
        return
    work = other / f"tenon-together-{os.getpid()}"
    for options in ((), ("--shard-size", "100K")):
        case = Case("out.safetensors", *options, source=SMALL)
        for command in (case.command("--work", work), ["plan", SMALL, case.out, *options, "--work", work]):
            assert "another file system" in tool(*command, code=1).stderr
            assert not work.exists(), os.listdir(work)
        assert os.listdir(case.folder) == []


@test
def records_that_are_wrong_publish_nothing():
    case = Case("out.zt", "--compress", "zstd", "--checksum", "crc32c", source=SMALL)
    case.plan()
    tool("run", case.work, "-q")
    kept = ROOM / "kept"
    shutil.copytree(case.work, kept)
    records = sorted((case.work / "pieces").glob("*.done"))
    parts = sorted((case.work / "pieces").glob("*.part"))
    harm = [
        lambda: shutil.copy(records[1], records[0]),
        lambda: os.unlink(parts[0]),
        lambda: damage(parts[0], lambda d: d.__delitem__(slice(len(d) - 1, None))),
    ]
    for i, do in enumerate(harm):
        do()
        tool("finish", case.work, "-q", code=None)
        assert not case.out.exists() or case.out.read_bytes() == case.reference["out.zt"], i
        case.out.unlink(missing_ok=True)
        shutil.rmtree(case.work, ignore_errors=True)
        shutil.copytree(kept, case.work)
    # the copy has other files: it can be abandoned, and the same command begins anew
    tool("abandon", case.work)
    tool(*case.command())
    case.is_right()


@test
def hostile_records_are_refused_or_read_and_never_crash():
    pick = random.Random(7)
    trailer = len('"checksum":"crc32c:0x00000000"}\n')
    for options in (("--compress", "zstd", "--checksum", "crc32c"), ("--cast", "*weight=int8,per=tensor")):
        case = Case("out.zt", *options, source=SMALL)
        case.plan()
        tool("run", case.work, "-q")
        kept = ROOM / f"hostile{len(options)}"
        shutil.copytree(case.work, kept)
        record = next(p for p in sorted((kept / "pieces").glob("*.done")) if p.stat().st_size > 200)
        body = record.read_bytes()[:-trailer]
        for i in range(25):
            data = bytearray(body)
            at = pick.randrange(len(data))
            if i % 3 == 0:
                del data[at:at + pick.randrange(1, 40)]
            elif i % 3 == 1:
                data[at] = pick.choice(b'0123456789",[]{}:\x00\xff')
            else:
                data[at:at] = pick.choice((b"9" * 25, b"[" * 99, b'""', b"[0,\"\"],"))
            shutil.rmtree(case.work, ignore_errors=True)
            case.out.unlink(missing_ok=True)
            shutil.copytree(kept, case.work)
            (case.work / "pieces" / record.name).write_bytes(
                bytes(data) + f'"checksum":"crc32c:0x{crc32c(data):08X}"}}\n'.encode())
            done = tool("finish", case.work, "-q", code=None)
            assert done.returncode in (0, 1, 2, 3), f"{i}: {done.returncode} {bytes(data)}"
            assert done.returncode == 0 or not case.out.exists(), f"{i}: failed and published"
        shutil.rmtree(kept)


@test
def files_that_became_shorter_publish_nothing():
    case = Case("out.zt", "--cast", "bf16", source=SMALL)
    case.plan()
    tool("run", case.work, "-q")
    os.truncate(case.work / "files/head", 1000)
    assert "abandon" in tool("finish", case.work, code=1).stderr
    case.is_untouched()


@test
def a_damaged_record_is_removed_by_who_has_its_lock_only():
    case = Case("out.zt", source=SMALL)
    case.plan()
    tool("run", case.work, "-q")
    record = sorted((case.work / "pieces").glob("*.done"))[1]
    good = record.read_bytes()
    with open(record.with_suffix(".lock"), "r+") as lock:       # as a process that makes it again
        fcntl.flock(lock, fcntl.LOCK_EX)
        record.write_bytes(good[:-5])
        tool("run", case.work, "-q")
        assert record.exists(), "removed under the lock of another"
        record.write_bytes(good)
    tool("finish", case.work, "-q")
    case.is_right()


@test
def looking_at_a_folder_hinders_nobody():
    case = Case("out.zt", source=SMALL)
    case.plan()
    lock = case.work / "pieces/00000.lock"
    lock.write_text("")
    trace = subprocess.run(["strace", "-f", "-e", "trace=flock", TENON, "ls", case.work], env=ENVIRONMENT,
                           capture_output=True, text=True) if shutil.which("strace") else None
    if trace and trace.returncode == 0:
        assert "LOCK_EX" not in trace.stderr, trace.stderr
    with open(lock, "r+") as held:      # a process that has no file in processes/ is none that lives
        fcntl.flock(held, fcntl.LOCK_EX)
        assert not json.loads(tool("ls", "--json", case.work).stdout)["holders"]


@test
def a_link_to_a_work_folder_is_not_taken_for_it():
    case = Case("out.zt", source=SMALL)
    case.plan()
    link = case.folder / "link"
    link.symlink_to(case.work)
    for path in (link, f"{link}/"):
        for command in (["abandon", path], ["run", path, "-q"], ["finish", path, "-q"]):
            assert "symbolic link" in tool(*command, code=3).stderr, (command, path)
    assert case.pieces() and link.is_symlink()
    tool("abandon", f"{case.work}/")
    assert not case.work.exists()


@test
def records_are_as_large_as_the_plan_allows():
    case = Case("out.zt", "--checksum", "crc32c", source=SMALL)
    case.plan()
    tool("run", case.work, "-q")
    record = sorted((case.work / "pieces").glob("*.done"))[0]
    os.truncate(record, 1 << 29)
    for command in (["finish", case.work], ["run", case.work], case.command()):
        done = tool(*command, code=1)
        assert re.search(r"expected at most \d{4,5} bytes in a record but found 536870912", done.stderr), done.stderr
        assert str(record) in done.stderr, done.stderr


@test
def errors_about_records_name_the_file():
    case = Case("out.zt", "--compress", "zstd", source=SMALL)
    case.plan()
    tool("run", case.work, "-q")
    records = sorted((case.work / "pieces").glob("*.done"))
    shutil.copy(records[1], records[0])
    part = json.loads(records[1].read_text())["part"]
    records[0].with_suffix(".part").write_bytes(bytes(part))
    done = tool("finish", case.work, code=1)
    assert str(records[0]) in done.stderr and "another piece" in done.stderr, done.stderr


@test
def an_output_that_appears_after_the_plan_is_not_replaced_unasked():
    for forced in ((), ("--force",)):
        case = Case("out.zt", source=SMALL)
        case.plan(*forced)
        tool("run", case.work, "-q")
        case.out.write_text("mine")
        done = tool("finish", case.work, "-q", code=2)
        assert "--force replaces it" in done.stderr and case.out.read_text() == "mine", done.stderr
        tool("finish", case.work, "-q", "--force")
        case.is_right(str(forced))
    case = Case("out.zt", source=SMALL)
    case.out.write_text("old")          # what was there when it was asked for is replaced
    case.plan("--force")
    tool("run", case.work, "-q")
    tool("finish", case.work, "-q")
    case.is_right()


@test
def one_piece_is_not_many():
    case = Case("out.zt", source=SMALL)
    tool("plan", SMALL, case.out, "-q")
    assert "the only piece is made: \"tenon finish\" publishes it" in tool("run", case.work).stderr
    assert "there is no piece 5: the last of 1 is 0" in tool("run", case.work, "--piece", "5", code=None).stderr
    tool("abandon", case.work)


# ---- dying ----

def traced(case, *mode, log):
    return subprocess.run([TOOLS / "trace", log, *map(str, mode), "--", TENON, *map(str, case.command("-j", "1"))],
                          env={**ENVIRONMENT, "FAULTS_PRELOAD": str(TOOLS / "inject.so")}, capture_output=True,
                          timeout=60)


@test
def killed_at_any_step_the_same_command_or_others_finish():
    if not (TOOLS / "trace").exists():
        return
    log = ROOM / "log"
    for case, more in ((Case("out.zt", "--cast", "bf16", "--checksum", "crc32c", source=SMALL), 11),
                       (Case("out.zt", "--compress", "zstd", source=SMALL), 41),
                       (Case("out.safetensors", "--shard-size", "100K", source=SMALL), 31)):
        traced(case, "count", log=log)
        case.is_right("without a fault")
        count = len(log.read_text().splitlines()) - 1
        assert count > 100
        for i in kills(count, more):
            case.reset()
            traced(case, "kill", i, log=log)
            state = contents(case.folder)
            head = [n for n in state if n.endswith((".zt", ".json")) or n == "out.safetensors"]
            assert not head or state == case.reference, f"killed at {i}: {sorted(state)}"
            if not head:
                if i % 2:
                    tool(*case.command())
                else:
                    end([begin(*case.command("--ranks", f"{r}/2")) for r in range(2)])
            elif case.work.exists():
                tool(*case.command())
            else:                       # published, and the folder is on its way out: the next command cleans up
                tool(*case.command(), code=None)
            case.is_right(f"killed at call {i} of {count}")


@test
def the_pieces_of_a_process_that_is_killed_are_taken_over_by_the_others():
    case = Case("out.zt", "--cast", "[lhe]*=mxfp4", "--checksum", "crc32c")
    processes = [begin(*case.command("--ranks", f"{i}/3", "-j", "1")) for i in range(3)]
    time.sleep(0.05)
    processes[1].kill()
    end([processes[0], processes[2]])
    processes[1].communicate()
    assert case.out.read_bytes() == case.reference["out.zt"]


def made_by(case):
    """The records that are there, and when they were made."""
    return {p.stem: (p.stat().st_mtime_ns, p.stat().st_ino) for p in case.work.glob("pieces/*.done")}


@test
def of_a_process_that_is_killed_at_most_one_piece_is_made_again():
    for options in ((), ("--compress", "zstd:9")):
        case = Case("out.zt", "--cast", "*=f64", *options, source=large_input())
        case.plan("--force")
        pieces = len(case.pieces())
        processes = [begin("run", case.work, "-q", "-j", "1", "--ranks", f"{i}/3") for i in range(3)]
        victim, until = processes[1], time.monotonic() + 30
        while time.monotonic() < until:
            if len(made_by(case)) >= 4 or victim.poll() is not None:
                break
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
        before = made_by(case)
        claimed = {p.stem for p in case.work.glob("pieces/*.lock") if p.read_text().split()[1:2] == [str(victim.pid)]}
        unsynced = {p.stem for p in case.work.glob("pieces/*.made-*")}
        end([processes[0], processes[2]])
        tool("run", case.work, "-q")
        after = made_by(case)
        assert len(after) == pieces and {k: after[k] for k in before} == before, "a piece that was made was made again"
        lost = claimed - set(before) - unsynced
        assert len(lost) <= 1, f"{len(lost)} pieces of the killed process were lost: {lost}"
        assert not list(case.work.glob("pieces/*.made-*"))
        tool("finish", case.work, "-q")
        case.is_right(str(options))


@test
def a_piece_that_was_made_but_not_synced_is_not_made_again_after_a_kill():
    case = Case("out.zt", "--compress", "zstd", "--checksum", "crc32c", source=SMALL)
    case.plan()
    tool("run", case.work, "-q")
    done = sorted(case.work.glob("pieces/*.done"))
    part = case.work / "pieces/00000.part"
    inode = part.stat().st_ino
    crc = crc32c(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip().encode())
    done[0].rename(done[0].with_suffix(f".made-{crc:08x}"))     # as if it had been killed before the sync
    done[1].rename(done[1].with_suffix(".made-00000000"))       # of another boot: its data may be lost
    tool("run", case.work, "-q")
    assert part.stat().st_ino == inode, "a piece of this boot was made again"
    assert done[0].exists() and done[1].exists()
    tool("finish", case.work, "-q")
    case.is_right()


@test
def clocks_do_not_matter():
    case = Case("out.zt", "--cast", "bf16", "--checksum", "crc32c")
    for n in (2, 3):
        case.reset()
        end([begin(*case.command("--ranks", f"{i}/{n}"), env=preloaded(CLOCK=str((i - 1) * 10 ** 8))) for i in range(n)])
        case.is_right(f"{n} clocks")
    case.reset()
    case.plan()
    tool("run", case.work, "--piece", "0-2", "-q", env=preloaded(CLOCK="-1000000000"))
    for k, path in enumerate(sorted(case.work.rglob("*"))):
        os.utime(path, (0, 0) if k % 2 else (4 * 10 ** 9, 4 * 10 ** 9))
    before = made_by(case)
    assert len(before) == 3
    tool("run", case.work, "-q", env=preloaded(CLOCK="1000000000"))
    assert {k: v for k, v in made_by(case).items() if k in before} == before, "a piece was made again"
    tool("finish", case.work, "-q")
    case.is_right()


class Holder:
    """A process that holds a piece: stopped when it has claimed one."""

    def __init__(self, case):
        self.case = case
        self.process = begin("run", case.work, "-j", "1", "-q")
        until = time.monotonic() + 20
        while time.monotonic() < until:
            self.process.send_signal(signal.SIGSTOP)
            if self.process.poll() is not None:
                break
            stat = pathlib.Path(f"/proc/{self.process.pid}/stat")
            while stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] not in "TZX":
                time.sleep(0.001)
            state = json.loads(tool("ls", "--json", case.work).stdout)
            if state["holders"]:
                self.state = state
                return
            self.process.send_signal(signal.SIGCONT)
            time.sleep(0.001)
        raise AssertionError("it never held a piece")


def large_input():
    source = ROOM / "big.safetensors"
    if not source.exists():
        write_input(source, rows=3000, width=4096)
    return source


def big_case(*options, name="out.zt"):
    """One whose pieces take long enough to be caught in the middle."""
    return Case(name, *(options or ("--compress", "zstd:12")), source=large_input())


@test
def a_process_that_is_stopped_is_named_and_one_that_is_killed_is_replaced():
    case = big_case()
    case.plan()
    holder = Holder(case)
    told = holder.state["holders"][0]
    assert told["pid"] == holder.process.pid and told["stopped"] and told["host"], told
    command = case.command()
    command.remove("-q")
    other = begin(*command)
    line = tells(other, "stopped")
    assert f"process {holder.process.pid} on {told['host']}" in line, line
    assert not case.out.exists()
    held = f"{told['piece']:05}.done"
    times = {p.name: p.stat().st_mtime_ns for p in (case.work / "pieces").glob("*.done")}
    assert held not in times
    holder.process.kill()
    holder.process.wait()
    end([other])
    case.is_right()


@test
def what_is_published_is_not_made_again_by_one_that_still_waits():
    case = big_case("--scale-mode", "mse", "--cast", "int8,per=tensor")
    case.plan()
    holder = Holder(case)
    command = case.command("--ranks", "1/8")
    command.remove("-q")
    late = begin(*command)
    assert "waiting for" in late.stderr.readline()
    late.send_signal(signal.SIGSTOP)
    holder.process.send_signal(signal.SIGCONT)
    end([holder.process])
    tool(*case.command("--ranks", "0/8"))       # the folder stays for the other ranks
    made = case.out.stat().st_mtime_ns
    late.send_signal(signal.SIGCONT)
    end([late])
    assert case.out.stat().st_mtime_ns == made, "the output was written to after it was published"
    assert json.loads(tool("ls", "--json", case.work).stdout)["published"]
    tool("abandon", case.work)
    case.is_right()


@test
def a_folder_that_is_used_is_not_abandoned():
    case = big_case()
    case.plan()
    holder = Holder(case)
    assert "is working there" in tool("abandon", case.work, code=3).stderr
    run = tool("run", case.work, "--piece", holder.state["holders"][0]["piece"])
    assert "1 is being made by others" in run.stderr, run.stderr
    holder.process.send_signal(signal.SIGCONT)
    end([holder.process])
    tool("finish", case.work, "-q")
    case.is_right()


@test
def a_disk_that_fills_up_leaves_the_output_and_the_work_goes_on_when_there_is_room():
    disk = ROOM / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "tenon-test", disk], capture_output=True).returncode:
        return
    try:
        for options in (("--compress", "zstd"), ("--cast", "*weight=mxfp4")):
            case = Case("out.zt", *options)
            out = disk / "out.zt"
            out.write_text("old")
            command = ["convert", "--together", "-f", case.source, out, "-q", "--piece-size", "200K", *options]
            processes = [begin(*command, "--ranks", f"{i}/2", "-j", "1") for i in range(2)]
            told = end(processes, codes=(3,))
            assert any("No space left on device" in line for line in told), told
            assert out.read_text() == "old", "the output was touched"
            subprocess.run(["mount", "-o", "remount,size=30m", disk], check=True)
            end([begin(*command, "--ranks", f"{i}/2", "-j", "1") for i in range(2)])
            assert out.read_bytes() == case.reference["out.zt"] and os.listdir(disk) == ["out.zt"], os.listdir(disk)
            out.unlink()
            subprocess.run(["mount", "-o", "remount,size=700k", disk], check=True)
    finally:
        subprocess.run(["umount", disk], check=True)


@test
def a_disk_that_is_full_for_one_process_stops_all_and_harms_nothing():
    case = Case("out.zt", "--compress", "zstd")
    processes = [begin(*case.command("--ranks", f"{i}/2", "-j", "1"),
                       preexec_fn=(lambda: __import__("resource").setrlimit(
                           __import__("resource").RLIMIT_FSIZE, (4096, 4096))) if i else None) for i in range(2)]
    out = end(processes, codes=(0, 1, 3))
    codes = [p.returncode for p in processes]
    if 3 in codes:
        assert not case.out.exists() or case.out.read_bytes() == case.reference["out.zt"], out
        if not case.out.exists():
            assert case.work.exists()
            tool(*case.command())
    assert case.out.read_bytes() == case.reference["out.zt"]


@test
def a_piece_that_fails_stops_the_others_and_is_tried_again():
    case = Case("out.zt", source=SMALL)
    case.plan()
    (case.work / "pieces/00001.failed").write_text("2 somewhere: cannot write: No space left on device\n")
    tool("run", case.work, "-q")                # it was there before: it is tried again
    assert not list((case.work / "pieces").glob("*.failed"))
    tool("finish", case.work, "-q")
    case.is_right()


@test
def shared_files_have_their_size_from_the_beginning_and_are_only_written():
    """So a client of NFS writes the bytes of a piece and not the page, of which another has written the rest."""
    for name, options, files in (("out.zt", ("--cast", "f64"), ["head"]),
                                 ("out.safetensors", ("--cast", "f64", "--shard-size", "4000000"), None)):
        case = big_case(*options, name=name)
        case.plan()
        files = files or [p.name for p in (case.work / "files").iterdir() if p.name != "head"]
        made = [p for p in case.reference if not p.endswith(".json")]
        sizes = {p.name: p.stat().st_size for p in (case.work / "files").iterdir()}
        planned, written = (sum(x) for x in ([sizes[f] for f in files], [len(case.reference[p]) for p in made]))
        assert len(files) == len(made) and planned <= written < planned + 20000, (planned, written)
        holder = Holder(case)
        opened = pathlib.Path(f"/proc/{holder.process.pid}/fd")
        modes = {os.readlink(fd): int((opened.parent / "fdinfo" / fd.name).read_text().split()[3], 8) & os.O_ACCMODE
                 for fd in opened.iterdir() if "/files/" in os.readlink(fd)}
        assert modes and set(modes.values()) == {os.O_WRONLY}, modes
        holder.process.send_signal(signal.SIGCONT)
        end([holder.process])
        tool("finish", case.work, "-q")
        case.is_right(name)


# ---- locks ----

def preloaded(**variables):
    return {"LD_PRELOAD": str(TOOLS / "locks.so"), **variables}


@test
def without_locks_pieces_are_dealt_by_rank_and_that_is_said():
    for n in (1, 3):
        case = Case("out.zt", "--cast", "bf16", "--checksum", "crc32c")
        command = case.command()
        command.remove("-q")
        told = end([begin(*command, "--ranks", f"{i}/{n}", env=preloaded(LOCKS="none")) for i in range(n)])
        assert all("has no locks" in line for line in told), told
        assert n == 1 or f"this is rank 1 of {n}" in told[1], told
        assert case.out.read_bytes() == case.reference["out.zt"]


@test
def locks_that_others_do_not_see_are_noticed():
    case = big_case()
    command = case.command()
    command.remove("-q")
    for hosts in (("", ""), ("near", "far")):
        case.reset()
        processes = [begin(*command, "--ranks", f"{i}/2", "-j", "1",
                           env=preloaded(LOCKS="local", **({"HOST": host} if host else {})))
                     for i, host in enumerate(hosts)]
        told = end(processes)
        assert any("not seen by other processes" in line for line in told), told
        assert case.out.read_bytes() == case.reference["out.zt"]


@test
def without_locks_two_that_publish_at_once_leave_the_whole_output():
    for name, options, slow in (("out.safetensors", ("--shard-size", "100K"), "-00002-of"),
                                ("out.safetensors", ("--shard-size", "100K"), ".json"), ("out.zt", (), "out.zt")):
        for force in ((), ("--force",)):
            case = Case(name, *options, source=SMALL)
            if force:
                case.convert()
                tool("convert", SMALL, case.out, "-q", *options, *force)
                case.reference = contents(case.folder)          # members of another set have other names
                case.reset()
                case.convert()
            case.plan(*force)
            tool("run", case.work, "-q")
            go = ROOM / "go"
            go.unlink(missing_ok=True)
            late = begin("finish", case.work, "-q", env=preloaded(LOCKS="none", SLOW=f"{slow}={go}"))
            time.sleep(0.3)             # it waits before it names a file, or comes later and finds all done
            tool("finish", case.work, "-q", env=preloaded(LOCKS="none"), code=None)
            go.touch()
            end([late])
            case.is_right(f"{name} {force}, late at {slow}")


sys.exit(main())
