"""results.py - looks at files by many processes: verify, stats, diff, compare-types; run by tests.py."""
import json
import os
import random
import shutil
import subprocess

from support import (ENVIRONMENT, ROOM, SMALL, TENON, TOOLS, begin, crc32c, damage, kills, test, tool, write_input)

QUANTIZED = ROOM / "quantized.zt"
OTHER = ROOM / "other.safetensors"
FOLDERS = ROOM / "folders"


def looks():
    """Commands that look at files, and their exit codes; --json is added."""
    if not QUANTIZED.exists():
        write_input(OTHER, seed=2, rows=80)
        tool("convert", SMALL, QUANTIZED, "-q", "--cast", "*weight=nvfp4", "--cast", "head=bf16", "--compress", "zstd",
             "--checksum", "crc32c")
        FOLDERS.mkdir()
    return [(0, "verify", QUANTIZED), (0, "stats", QUANTIZED, "--exclude", "*bias"),
            (1, "diff", SMALL, QUANTIZED), (1, "diff", SMALL, OTHER, "--tolerance", "1,0.1"), (0, "diff", SMALL, SMALL),
            (0, "compare-types", SMALL, "--types", "mxfp4,int4_b32,q4_K")]


def all_print(words, n, expected, code, what, **more):
    """One of n processes prints what one alone prints, the others nothing."""
    processes = [begin(*words, "--together", "--piece-size", "50K", "--ranks", f"{i}/{n}", **more) for i in range(n)]
    texts = [p.communicate(timeout=60) for p in processes]
    assert [p.returncode for p in processes] == [code] * n, f"{what}: {[p.returncode for p in processes]} {texts}"
    assert sorted(len(t[0]) for t in texts)[:-1] == [0] * (n - 1), f"{what}: several have printed"
    assert "".join(t[0] for t in texts) == expected.stdout, f"{what}: {texts}"
    assert "".join(t[1] for t in texts) == expected.stderr, f"{what}: {texts}"


@test
def any_number_of_processes_prints_what_one_prints():
    for code, *words in looks():
        for more in ((), ("--json",)):
            expected = tool(*words, *more, code=code)
            for n in (1, 2, 3, 8):
                all_print([*words, *more, "-j", 1 + n % 3], n, expected, code, f"{words} by {n}")
            assert not list(ROOM.glob("*.tenon")), list(ROOM.glob("*.tenon"))


@test
def a_rank_that_comes_late_prints_nothing_and_knows_the_result():
    code, *words = looks()[2]
    expected = tool(*words, code=code)
    work = FOLDERS / "late"
    texts = [tool(*words, "--together", "--work", work, "--ranks", f"{i}/3", code=code).stdout for i in range(3)]
    assert texts == [expected.stdout, "", ""] and not work.exists()
    for _ in range(2):                  # without ranks the next one begins anew
        assert tool(*words, "--together", "--work", work, code=code).stdout == expected.stdout
    tool(*words, "--together", "--work", work, "--ranks", "0/3", code=code)
    assert work.exists()                # others were awaited; the same rank again begins anew
    assert tool(*words, "--together", "--work", work, "--ranks", "0/3", code=code).stdout == expected.stdout
    tool("abandon", work)
    assert not work.exists()


@test
def a_look_that_was_killed_at_any_step_goes_on():
    if not (TOOLS / "trace").exists():
        return
    log = ROOM / "log"
    for (code, *words), more in zip(looks(), (61, 53, 47, 67, 43, 71)):
        expected = tool(*words, code=code)
        folder = FOLDERS / "killed"
        command = [*words, "--together", "--piece-size", "50K", "--work", folder, "-j", "1"]

        def trace(*mode):
            return subprocess.run([TOOLS / "trace", log, *map(str, mode), "--", TENON, *map(str, command)],
                                  env={**ENVIRONMENT, "FAULTS_PRELOAD": str(TOOLS / "inject.so")},
                                  capture_output=True, timeout=60)
        assert trace("count").stdout.decode() == expected.stdout
        count = len(log.read_text().splitlines()) - 1
        for i in kills(count, more):
            trace("kill", i)
            done = tool(*command, code=code)
            assert done.stdout == expected.stdout, f"{words} killed at call {i} of {count}: {done}"
            assert os.listdir(FOLDERS) == [], f"{words} killed at call {i} of {count}: {os.listdir(FOLDERS)}"


@test
def another_question_or_input_is_refused():
    looks()
    work = FOLDERS / "asked"
    tool("stats", SMALL, "--together", "--work", work, "--ranks", "0/2", "--only", "*bias")
    (work / "published").unlink()
    for words, what in ((("stats", SMALL, "--only", "*norm"), "options are not"),
                        (("verify", SMALL), "work folder of \"stats\", not of \"verify\"; abandon the work"),
                        (("stats", OTHER, "--only", "*bias"), "input is not")):
        done = tool(*words, "--together", "--work", work, "--ranks", "1/2", code=3)
        assert what in done.stderr, done.stderr
    assert json.loads(tool("ls", "--json", work).stdout)["pieces_made"] == 1
    assert "work of \"stats\"" in tool("run", work, code=2).stderr
    tool("abandon", work)
    assert "--work needs --together" in tool("stats", SMALL, "--work", "x", code=2).stderr
    assert "one process" in tool("stats", "-", "--together", code=2).stderr
    assert "--work DIR" in tool("verify", "s3://bucket/x.zt", "--together", code=2).stderr


@test
def results_that_are_damaged_or_hostile_are_refused():
    looks()
    pick = random.Random(3)
    trailer = len('"checksum":"crc32c:0x00000000"}\n')
    for code, *words in looks():
        work, kept = FOLDERS / "hostile", FOLDERS / "kept"
        command = [*words, "--together", "--piece-size", "200K", "--work", work, "--ranks"]
        tool(*command, "0/2", code=code)
        (work / "published").unlink()
        work.rename(kept)
        record = max((kept / "pieces").glob("*.done"), key=lambda p: p.stat().st_size)
        body = record.read_bytes()[:-trailer]
        for i in range(12):
            data = bytearray(body)
            at = pick.randrange(len(data))
            if i % 3 == 0:
                del data[at:at + pick.randrange(1, 40)]
            elif i % 3 == 1:
                data[at] = pick.choice(b'0123456789",[]{}:\x00\xff')
            else:
                data[at:at] = pick.choice((b"9" * 25, b"[" * 99, b'""', b"[0,\"\"],", b"null,"))
            shutil.copytree(kept, work)
            (work / "pieces" / record.name).write_bytes(
                bytes(data) + f'"checksum":"crc32c:0x{crc32c(data):08X}"}}\n'.encode())
            done = tool(*command, "1/2", code=None)
            assert done.returncode in (0, 1, 2, 3), f"{i}: {done.returncode} {bytes(data)}"
            shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(kept)


@test
def a_bad_file_is_told_once():
    bad = ROOM / "bad.zt"
    looks()
    shutil.copy(QUANTIZED, bad)
    damage(bad, lambda d: d.__setitem__(slice(5000, 5003), b"xyz"))
    for words in (["verify", bad], ["verify", bad, "--json"], ["stats", bad]):
        expected = tool(*words, code=1)
        all_print(words, 3, expected, 1, words)


@test
def an_error_names_the_input():
    looks()
    nan = ROOM / "nan.safetensors"
    shutil.copy(SMALL, nan)
    damage(nan, lambda d: d.__setitem__(slice(-400000, -399996), b"\xff\xff\xff\x7f"))
    words = ["compare-types", nan, "--types", "nvfp4"]
    alone = tool(*words, code=1)
    assert tool(*words, "--together", "--work", FOLDERS / "nan", code=1).stderr == alone.stderr
    tool("abandon", FOLDERS / "nan")


@test
def parts_without_checksums_that_cannot_be_read_are_told_as_such():
    many, unknown = ROOM / "many.safetensors", ROOM / "unknown.zt"
    looks()
    write_input(many, rows=1, layers=200)
    tool("convert", many, unknown, "-q", "--compress", "zstd", "--checksum", "crc32c")
    data = unknown.read_bytes()         # of the last tensor neither checksum nor encoding is known
    for old, new in ((b"hchecksum", b"hchecksux"), (b"dzstd", b"dzstx")):
        at = data.rindex(old)
        data = data[:at] + new + data[at + len(old):]
    unknown.write_bytes(data)
    expected = tool("verify", unknown, "-j", 1, code=1)
    assert "1 unreadable" in expected.stdout
    all_print(["verify", unknown, "-j", 1], 1, expected, 1, "unknown encoding")


@test
def processes_that_come_and_go_all_the_time_print_nothing_or_the_result():
    looks()
    words = ["stats", SMALL, "--only", "*bias"]
    expected = tool(*words).stdout
    command = [*words, "--together", "--work", FOLDERS / "busy"]
    running = [begin(*command) for _ in range(4)]
    for i in range(120):
        p = running.pop(0)
        out, problem = p.communicate(timeout=60)
        assert (p.returncode, problem) == (0, "") and out in ("", expected), f"{p.returncode} {out} {problem}"
        if i < 116:
            running.append(begin(*command))
    assert os.listdir(FOLDERS) == []
