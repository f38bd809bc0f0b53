"""objects.py - inputs and outputs that are elsewhere, by many processes; run by tests.py.

The server is that of tests/remote: an object store in memory that checks signatures and keeps a list of requests."""
import atexit
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from support import ENVIRONMENT, ROOM, SMALL, TENON, begin, crc32c, end, test, tool, write_input

HERE = pathlib.Path(__file__).resolve().parent
FILES = ROOM / "served"
SECRET = "secret/of+the=test"
LARGE = FILES / "large.safetensors"
server = None


def start():
    """The server, with the first test that needs it."""
    global server
    if server:
        return
    FILES.mkdir()
    write_input(LARGE, rows=9000)       # two tensors of 18 MB and small ones
    shutil.copy(SMALL, FILES / "small.safetensors")
    server = subprocess.Popen([sys.executable, "-B", HERE.parent / "remote/server.py", FILES], stdout=subprocess.PIPE)
    atexit.register(server.kill)
    server.url = f"http://127.0.0.1:{int(server.stdout.readline())}"
    ENVIRONMENT.update({"AWS_ACCESS_KEY_ID": "TESTKEY", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu-test-1",
                        "AWS_ENDPOINT_URL": server.url, "AWS_EC2_METADATA_DISABLED": "true", "no_proxy": "127.0.0.1",
                        "TENON_REMOTE_TIMEOUT": "30"})


def ask(what):
    with urllib.request.urlopen(server.url + what) as reply:
        return reply.read()


def requests():
    """Those since the last time."""
    return json.loads(ask("/_log"))


def stored(key):
    """The bytes of an object, or None."""
    try:
        return ask("/_object?" + urllib.parse.quote(key))
    except (urllib.error.HTTPError, urllib.error.URLError, ConnectionError, OSError):
        return None


def parts_of(log):
    """Numbers of parts that were sent, in order."""
    return [int(re.search(r"partNumber=(\d+)", entry["query"])[1]) for entry in log
            if entry["method"] == "PUT" and "partNumber" in entry["query"] and entry["status"] == 200]


def uploads(key=""):
    return tool("uploads", f"s3://bucket/{key}").stdout


class Far:
    """A conversion into the store, and the bytes that a plain one writes into a file."""
    number = 0

    def __init__(self, name, *options, source=None, pieces="6M", switches=""):
        start()
        Far.number += 1
        self.number = Far.number
        folder = ROOM / f"far{self.number}"
        folder.mkdir()
        self.source, self.options, self.pieces = source or LARGE, options, pieces
        self.key = f"far{self.number}/{name}"
        self.url = f"s3://bucket/{switches}{self.key}"
        self.work = folder / "work"
        self.near = folder / name
        tool("convert", self.source, self.near, "-q", *options)
        self.reference = self.near.read_bytes() if self.near.exists() else None

    def again(self, number):
        self.key = re.sub(r"^far\d+/(\d+/)?", f"far{self.number}/{number}/", self.key)
        self.url = f"s3://bucket/{self.key}"

    def words(self, *more):
        return [self.source, self.url, "-q", "--piece-size", self.pieces, "--work", self.work, *self.options, *more]

    def command(self, *more):
        return ["convert", "--together", *self.words(*more)]

    def is_right(self, what=""):
        assert stored(self.key) == self.reference, f"{what}: other bytes than one process writes"
        assert not self.work.exists(), f"{what}: {os.listdir(self.work)}"
        assert self.uploads() == "", what

    def uploads(self):
        return uploads(self.key)

    def records(self):
        return sorted(self.work.glob("pieces/*.done"))

    def sent(self):
        """How many parts were sent, as the records say."""
        try:
            return sum(len(json.loads(r.read_text()).get("sent", [])) for r in self.records())
        except FileNotFoundError:
            return 0                    # published meanwhile


# ---- the same bytes ----

@test
def an_object_has_the_same_bytes_for_any_number_of_processes():
    for k, (name, options) in enumerate((
            ("out.safetensors", ()), ("out.zt", ("--cast", "bf16", "--checksum", "crc32c")),
            ("out.zt", ("--compress", "zstd")), ("out.zt", ("--cast", "int8,per=tensor")),
            ("out.zt", ("--cast", "[eh]*=mxfp4", "--checksum", "sha256")), ("out.gguf", ("--cast", "embedding=q8_0")),
            ("out.npz", ()), ("out.btf", ("--drop-metadata", "--drop-names")))):
        far = Far(name, *options)
        for n in (1, 2, 3, 8) if k < 2 else (1, 3):
            far.again(n)
            requests()
            end([begin(*far.command("--ranks", f"{i}/{n}")) for i in range(n)])
            far.is_right(f"{name} {options} by {n}")
            log = requests()
            assert sorted(parts_of(log)) == list(range(1, len(parts_of(log)) + 1)), (n, options, parts_of(log))
            final = [entry for entry in log if entry["method"] == "POST" and "uploadId" in entry["query"]]
            assert len(final) == (1 if parts_of(log) else 0), final


@test
def processes_send_what_they_make():
    far = Far("out.safetensors")
    tool("plan", *far.words())
    requests()
    tool("run", far.work, "-q")
    by_makers = parts_of(requests())
    assert len(by_makers) >= 4 and 1 not in by_makers, by_makers
    assert far.sent() == len(by_makers)
    assert stored(far.key) is None, "visible before the end"
    tool("finish", far.work, "-q")
    by_finisher = parts_of(requests())
    assert 1 in by_finisher and not set(by_finisher) & set(by_makers), (by_makers, by_finisher)
    assert len(by_finisher) < len(by_makers), (by_makers, by_finisher)
    far.is_right()


@test
def tied_tensors_are_copied_in_an_object():
    source = pathlib.Path(__file__).parent.parent / "golden/pytorch/v2.15/tied_params.pt"
    for name in ("out.zt", "out.safetensors"):
        far = Far(name, "--drop-metadata", source=source)
        end([begin(*far.command("--ranks", f"{i}/2")) for i in range(2)])
        far.is_right(name)


class FarSet(Far):
    """One that is cut into several objects, with an index that names them."""

    def __init__(self, name, *options, **more):
        super().__init__(name, *options, **more)
        self.reference = {p.name: p.read_bytes() for p in self.near.parent.iterdir() if p.is_file()}

    def found(self):
        folder = self.key.rsplit("/", 1)[0]
        return {name: data for name in self.reference if (data := stored(f"{folder}/{name}")) is not None}

    def is_right(self, what=""):
        assert self.found() == self.reference, f"{what}: {sorted(self.found())}"
        assert not self.work.exists(), f"{what}: {os.listdir(self.work)}"
        assert uploads(self.key.rsplit("/", 1)[0]) == "", what


def sets():
    return [FarSet("out.safetensors", "--shard-size", "13M"),
            FarSet("out.safetensors", "--shard-size", "10M", "--cast", "layer.1.weight=int8,per=tensor", "--cast", "bf16"),
            FarSet("out.gguf", "--shard-size", "20M", "--drop-metadata")]


@test
def the_objects_of_a_set_are_made_by_any_number_of_processes():
    for far in sets():
        assert len(far.reference) > 1, far.reference.keys()
        for n in (1, 2, 3):
            far.again(n)
            requests()
            end([begin(*far.command("--ranks", f"{i}/{n}")) for i in range(n)])
            far.is_right(f"{far.options} by {n}")
            log = [e for e in requests() if e["method"] in ("PUT", "POST") and e["status"] == 200]
            head = next(name for name in far.reference if name.endswith(".json") or "-00001-of" in name)
            if ".gguf" not in head:
                assert log[-1]["path"].endswith(head), f"the index came before {log[-1]['path']}"


@test
def one_process_writes_a_set_of_objects():
    for far in sets():
        tool("convert", far.source, far.url, "-q", *far.options)
        far.is_right(str(far.options))


@test
def a_set_whose_objects_exist_is_refused():
    far = FarSet("out.safetensors", "--shard-size", "13M")
    member = next(name for name in far.reference if "-00002-of" in name)
    taken = f"s3://bucket/{far.key.rsplit('/', 1)[0]}/{member}"
    for command in (far.command(), far.command("--force"), ["convert", far.source, far.url, "-q", *far.options]):
        tool("convert", SMALL, taken, "-q", "--force")
        before = far.found()
        assert list(before) == [member]
        done = tool(*command, code=2)
        assert "already exists" in done.stderr and member in done.stderr, done.stderr
        assert far.found() == before, sorted(far.found())
        if far.work.exists():
            tool("abandon", far.work)
        assert uploads(far.key.rsplit("/", 1)[0]) == ""


@test
def a_set_goes_on_after_a_kill_while_it_is_published():
    for switch in ("~stuck/", ""):
        far = FarSet("out.safetensors", "--shard-size", "13M", switches=switch)
        tool("plan", *far.words())
        tool("run", far.work, "-q")
        assert not far.found(), "visible before the end"
        if switch:
            process = begin("finish", far.work, "-q")
            until = time.monotonic() + 30
            while len(far.found()) < 2 and time.monotonic() < until:
                time.sleep(0.02)
            process.kill()
            process.communicate(timeout=60)
            assert not any(name.endswith(".json") for name in far.found()), "the index came first"
        tool(*far.command())
        far.is_right(switch)


@test
def a_set_is_abandoned():
    far = FarSet("out.safetensors", "--shard-size", "13M")
    tool("plan", *far.words())
    tool("run", far.work, "-q")
    assert uploads(far.key.rsplit("/", 1)[0]).count("upload-") > 1
    tool("abandon", far.work)
    assert uploads(far.key.rsplit("/", 1)[0]) == "" and not far.found() and not far.work.exists()


# ---- what is there, and faults ----

@test
def an_object_that_exists_is_replaced_with_force_only():
    far = Far("out.zt", "--cast", "bf16")
    tool("convert", SMALL, far.url, "-q")
    before = stored(far.key)
    assert "already exists" in tool(*far.command(), code=2).stderr
    assert stored(far.key) == before and not far.work.exists()
    tool(*far.command("--force"))
    far.is_right()


@test
def an_object_that_appears_meanwhile_is_not_replaced():
    far = Far("out.zt", "--cast", "bf16")
    tool("plan", *far.words())
    tool("run", far.work, "-q")
    tool("convert", SMALL, far.url, "-q")
    before = stored(far.key)
    assert "already exists" in tool("finish", far.work, "-q", code=2).stderr
    assert stored(far.key) == before
    tool("abandon", far.work)
    assert far.uploads() == "" and stored(far.key) == before


@test
def parts_that_fail_are_sent_again():
    far = Far("out.safetensors", switches="~partfail=3/")
    requests()
    tool(*far.command())
    assert [entry["status"] for entry in requests()].count(503) == 3
    far.is_right()


@test
def a_conversion_into_a_store_goes_on_after_a_kill():
    far = Far("out.safetensors", "--cast", "f32,times=2", switches="~delay=100/")
    process = begin(*far.command("-j", "1"))
    until = time.monotonic() + 60
    while process.poll() is None and far.sent() < 2 and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert stored(far.key) is None, "visible before the end"
    recorded, first = far.sent(), parts_of(requests())
    assert recorded >= 2 and far.key in far.uploads(), (recorded, far.uploads())
    tool(*far.command())
    second = parts_of(requests())
    again = set(first) & set(second)
    assert len(again) <= len(first) - recorded, f"{recorded} recorded, first {first}, then {second}"
    far.is_right()


@test
def an_upload_that_is_gone_is_told():
    far = Far("out.safetensors")
    tool("plan", *far.words())
    tool("run", far.work, "--piece", "0-2", "-q")
    assert far.sent()
    tool("uploads", f"s3://bucket/{far.key}", "--abort")
    assert "does not have the upload any more" in tool("run", far.work, "-q", code=3).stderr
    tool("abandon", far.work)
    assert not far.work.exists()
    tool(*far.command())
    far.is_right()


@test
def one_that_is_gone_when_all_is_made_is_told():
    far = Far("out.safetensors")
    tool("plan", *far.words())
    tool("run", far.work, "-q")
    tool("uploads", f"s3://bucket/{far.key}", "--abort")
    assert "does not have the upload any more" in tool("finish", far.work, code=3).stderr
    assert far.work.exists() and stored(far.key) is None
    tool("abandon", far.work)


@test
def abandoning_ends_the_upload():
    far = Far("out.safetensors")
    tool("plan", *far.words())
    tool("run", far.work, "--piece", "0-2", "-q")
    assert far.key in far.uploads()
    tool("abandon", far.work)
    assert far.uploads() == "" and not far.work.exists() and stored(far.key) is None


@test
def a_process_that_is_killed_when_the_object_appears_has_published():
    far = Far("out.safetensors", switches="~stuck/")
    tool("plan", *far.words())
    tool("run", far.work, "-q")
    process = begin("finish", far.work, "-q")
    until = time.monotonic() + 30
    while stored(far.key) is None and time.monotonic() < until:
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=60)
    tool(*far.command())
    far.is_right()


@test
def a_rank_that_comes_late_finds_the_object():
    far = Far("out.zt", "--cast", "bf16", source=SMALL)
    tool(*far.command("--ranks", "0/2"))
    assert stored(far.key) == far.reference and far.work.exists()
    requests()
    tool(*far.command("--ranks", "1/2"))
    assert not [e for e in requests() if e["method"] in ("PUT", "POST")]
    far.is_right()


# ---- work folders that somebody else has written ----

def seal(text):
    return text + f'"checksum":"crc32c:0x{crc32c(text.encode()):08X}"}}\n'


def forge(path, *changes):
    text = path.read_text()
    text = text[:text.rindex('"checksum"')]
    for old, new in changes:
        assert re.search(old, text), (old, text)
        text = re.sub(old, new, text, count=1)
    path.write_text(seal(text))


@test
def records_with_other_etags_publish_nothing():
    far = Far("out.safetensors")
    tool("plan", *far.words())
    tool("run", far.work, "-q")
    record = next(r for r in far.records() if '"sent"' in r.read_text())
    kept = record.read_text()
    for new, told in (('"sent":["\\"</ETag><x>\\""', "ETags of"), ('"sent":["\\""', "ETags of"), ('"sent":[""', "ETags of"),
                      ('"sent":["x","\\"a\\"","\\"a\\"","\\"a\\""', "found more"),
                      ('"sent":["\\"0123456789abcdef0123456789abcdef\\""', "InvalidPart|400")):
        record.write_text(kept)
        forge(record, (r'"sent":\["[^]]*?\\""', new.replace("\\", "\\\\")))
        done = tool("finish", far.work, "-q", code=None)
        assert done.returncode in (1, 3) and re.search(told, done.stderr), (new, done.stderr)
        assert record.name in done.stderr or "400" in done.stderr, done.stderr
    assert stored(far.key) is None
    record.write_text(kept)
    tool("finish", far.work, "-q")
    far.is_right()


@test
def an_upload_of_another_object_is_not_touched():
    far = Far("out.safetensors")
    other = ask("/_begin?elsewhere.zt").decode()
    tool("plan", *far.words())
    tool("run", far.work, "--piece", "0-2", "-q")
    note = far.work / "uploads/head"
    kept = note.read_text()
    forge(note, (r'"object":"[^"]*"', '"object":"s3://bucket/elsewhere.zt"'), (r'"id":"[^"]*"', f'"id":"{other}"'))
    assert "names another object" in tool("run", far.work, "-q", code=1).stderr
    assert "not of this output" in tool("abandon", far.work, code=1).stderr
    assert "elsewhere.zt" in uploads()
    for damage in ("", "{", "x" * 9000, kept[:-9], kept.replace('"id"', '"ID"')):
        note.write_text(damage)
        assert "abandon the work" in tool("run", far.work, "-q", code=1).stderr, damage[:50]
    note.write_text(kept)
    tool("abandon", far.work)
    tool("uploads", "s3://bucket/elsewhere.zt", "--abort")
    assert far.uploads() == ""


@test
def no_secret_is_left_in_a_work_folder():
    far = Far("out.safetensors")
    tool("plan", *far.words())
    done = tool("run", far.work)
    texts = [done.stdout + done.stderr] + [p.read_bytes().decode(errors="replace") for p in far.work.rglob("*")
                                           if p.is_file() and p.parent.name != "files"]
    assert len(texts) > 5 and not any(SECRET in text or "TESTKEY" in text for text in texts)
    tool("abandon", far.work)


@test
def a_work_folder_is_needed_for_an_object():
    start()
    for command in ("plan", "convert"):
        more = ["--together"] if command == "convert" else []
        done = tool(command, SMALL, "s3://bucket/none.zt", *more, code=2)
        assert "--work DIR" in done.stderr, done.stderr
    for url in (f"{server.url}/x.zt", "hf://org/repo/x.zt"):
        work = ROOM / "never"
        done = tool("convert", "--together", SMALL, url, "--work", work, code=1)
        assert "only s3:// URLs can be written" in done.stderr and not work.exists(), done.stderr


# ---- inputs ----

@test
def an_input_may_be_elsewhere_and_must_stay_what_it_is():
    start()
    reference = ROOM / "of-near.zt"
    tool("convert", LARGE, reference, "-q", "--cast", "bf16", "--checksum", "crc32c")
    for url in (f"{server.url}/large.safetensors", "s3://bucket/large.safetensors"):
        out = ROOM / "of-far.zt"
        words = [url, out, "-q", "--cast", "bf16", "--checksum", "crc32c", "--piece-size", "6M"]
        end([begin("convert", "--together", *words, "--ranks", f"{i}/3") for i in range(3)])
        assert out.read_bytes() == reference.read_bytes(), url
        out.unlink()
    far = Far("out.zt", "--cast", "f16", source=LARGE)
    far.source = f"{server.url}/large.safetensors"
    tool(*far.command())
    far.is_right("from a URL to a URL")
    changing = FILES / "changing.safetensors"
    shutil.copy(SMALL, changing)
    out, url = ROOM / "of-changing.zt", f"{server.url}/changing.safetensors"
    work = ROOM / "of-changing.zt.tenon"
    tool("plan", url, out, "-q", "--piece-size", "200K")
    assert re.search(r'"version":"\\"[0-9a-f]{32}\\""', (work / "plan.json").read_text())
    tool("run", work, "--piece", "0", "-q")
    os.utime(changing, (1, 1))          # another ETag
    for command in (["run", work], ["finish", work], ["convert", "--together", url, out, "--piece-size", "200K"]):
        done = tool(*command, code=3)
        assert "the input is not what it was" in done.stderr, done.stderr
    assert not out.exists()
    tool("abandon", work)


@test
def files_elsewhere_are_looked_at_by_many():
    start()
    near, far = FILES / "large.safetensors", f"{server.url}/large.safetensors"
    other = f"{server.url}/small.safetensors"
    work = ROOM / "looking"
    for code, *words in ((0, "verify", far), (0, "stats", far), (0, "diff", far, near), (1, "diff", far, other),
                         (0, "compare-types", other, "--types", "mxfp4,q8_0")):
        expected = tool(*words, code=code)
        processes = [begin(*words, "--together", "--work", work, "--piece-size", "2M", "--ranks", f"{i}/3")
                     for i in range(3)]
        texts = [p.communicate(timeout=60) for p in processes]
        assert [p.returncode for p in processes] == [code] * 3, texts
        assert "".join(t[0] for t in texts) == expected.stdout, words
        assert not work.exists()
    done = tool("verify", "--together", far, code=2)
    assert "--work DIR" in done.stderr, done.stderr
