"""Every command on URLs: the same output as for local files, few requests, and faults that end soon."""
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from support import (ENVIRONMENT, FILES, ROOM, TENON, Server, bytes_asked, equal, expect, make_files, outputs,
                     round_trips, run_all, test, tool)

make_files()
server = Server()
URL = server.url
numbers = itertools.count()
KEY = {"AWS_ACCESS_KEY_ID": "TESTKEY", "AWS_SECRET_ACCESS_KEY": "secret/of+the=test"}
STORE = {"AWS_ENDPOINT_URL": URL, "AWS_REGION": "eu-test-1"}
S3 = KEY | STORE


def local_and_far(path, *command, switches=""):
    """The output of a command on the local file and on its URL, and what the server saw."""
    near = tool(*(FILES / path if word is None else word for word in command))
    server.log()
    far = tool(*(f"{URL}/{switches}{path}" if word is None else word for word in command))
    equal(far.out.replace(f"{URL}/{switches}", f"{FILES}/"), near.out, f"{command} {path} {switches}")
    return far, server.log()


def converted(source, *options, env=None):
    target = ROOM / f"out{next(numbers)}.zt"
    tool("convert", source, target, *options, env=env)
    data = target.read_bytes()
    target.unlink()
    return data


# ---- the same output ----

@test
def listing_a_file_gives_what_it_gives_locally():
    for path in ("m.safetensors", "m.zt", "m.npz", "small.safetensors", "set/model.safetensors.index.json"):
        local_and_far(path, "ls", None)
        local_and_far(path, "ls", "-l", None)


@test
def commands_give_what_they_give_locally():
    for path in ("m.safetensors", "m.npz", "set/model.safetensors.index.json"):
        local_and_far(path, "stats", None)
        local_and_far(path, "verify", None)
        local_and_far(path, "ls", "--json", None)
        far = tool("diff", f"{URL}/{path}", FILES / path)
        equal(far.out, tool("diff", FILES / path, FILES / path).out, path)
    local_and_far("m.safetensors", "show", None, "embedding", "--slice", "1000000:1000010")
    local_and_far("m.safetensors", "meta", None)
    local_and_far("m.safetensors", "compare-types", None, "--types", "mxfp4", "--only", "norm")
    local_and_far("m.safetensors", "report", None, "--only", "*w1")
    local_and_far("m.safetensors", "describe", None)


@test
def converting_a_file_gives_the_same_bytes():
    for path in ("m.safetensors", "m.zt", "m.npz", "set/model.safetensors.index.json"):
        for options in ((), ("--cast", "f16"), ("--compress", "zstd", "--checksum", "crc32c")):
            expect(converted(f"{URL}/{path}", *options) == converted(FILES / path, *options), path, options)


@test
def a_url_that_ends_in_a_slash_is_a_folder():
    equal(tool("ls", f"{URL}/set/").out, tool("ls", FILES / "set").out)
    equal(tool("ls", f"{URL}/single/").out, tool("ls", FILES / "single").out)
    expect("is a folder without an index" in tool("ls", f"{URL}/none/", code=3).err)


@test
def what_is_elsewhere_is_not_edited_in_place():
    for url in (f"{URL}/small.safetensors", "s3://bucket/small.safetensors"):
        result = tool("meta", url, "--set", "a=b", env=S3, code=1)
        expect("cannot be edited in place" in result.err, result.err)


@test
def several_urls_are_one_input():
    far = tool("convert", f"{URL}/small.safetensors", f"{URL}/single/model.safetensors", ROOM / "twice.zt", code=2)
    near = tool("convert", FILES / "small.safetensors", FILES / "single/model.safetensors", ROOM / "twice.zt", code=2)
    equal(far.err.replace(URL, str(FILES)), near.err)


@test
def an_empty_file_is_reported_as_locally():
    equal(tool("ls", f"{URL}/empty", code=1).err.replace(URL, str(FILES)), tool("ls", FILES / "empty", code=1).err)


# ---- requests ----

@test
def listing_takes_few_requests():
    for path, requests in (("m.safetensors", 1), ("m.zt", 2), ("many.safetensors", 2), ("many.zt", 3)):
        _, log = local_and_far(path, "ls", None)
        expect(len(log) <= requests, path, len(log), "requests, at most", requests)


@test
def a_set_of_twelve_files_takes_three_round_trips():
    # an index of more than 64 KiB takes one more
    for path, most in (("set/model.safetensors.index.json", 3), ("longset/model.safetensors.index.json", 4)):
        _, log = local_and_far(path, "ls", None, switches="~delay=100/")
        expect(round_trips(log) <= most, path, round_trips(log), "round trips")


@test
def an_archive_of_many_members_takes_few_round_trips():
    _, log = local_and_far("m.npz", "ls", None, switches="~delay=50/")
    expect(round_trips(log) < 10, round_trips(log), "round trips")


@test
def each_byte_is_asked_for_once():
    for path in ("m.safetensors", "m.zt", "m.npz"):
        size = (FILES / path).stat().st_size
        for command in (("stats",), ("verify",), ("convert",)):
            server.log()
            out = (ROOM / f"once{next(numbers)}.zt",) if command == ("convert",) else ()
            tool(*command, f"{URL}/{path}", *out)
            asked = bytes_asked(server.log())
            expect(asked <= 1.05 * size, command, path, asked, "bytes asked of", size)


@test
def every_range_names_the_version():
    server.log()
    tool("stats", f"{URL}/m.safetensors")
    log = server.log()
    expect(len(log) > 2 and all("If-Match" in entry["headers"] for entry in log[1:]), log)


# ---- faults ----

@test
def faults_that_pass_change_nothing():
    wanted = converted(FILES / "m.safetensors")
    for switch in ("fail=503x2", "fail=429x1", "cut=1000x2", "reset=70000x2", "cut=0x1", "silence=x1", "headers",
                   "weak", "noetag"):
        expect(converted(f"{URL}/~{switch}/m.safetensors") == wanted, switch)


@test
def faults_that_last_end_soon():
    told = {"fail=503": "503 SlowDown", "cut=1000x99": "partial file|transfer closed|tries",
            "reset=0x99": "cannot be reached", "silence=x99": "cannot be reached", "slow=100": "cannot be reached",
            "short": "fewer bytes", "long": "more bytes", "norange": "no ranges", "wrongrange": "another range",
            "loop": "redirects more than 5", "to=ftp%3A%2F%2Fx%2F": "another kind", "encoded": "compressed",
            "xml": "404", "fail=404": "404", "fail=403": "403"}
    for switch, text in told.items():
        target = ROOM / f"never{next(numbers)}.zt"
        result = tool("convert", f"{URL}/~{switch}/m.safetensors", target, code=3, most=60)
        expect(any(word in result.err for word in text.split("|")), switch, result.err)
        expect(len(result.err.splitlines()) == 1 and "\x1b" not in result.err and len(result.err) < 1000, result.err)
        expect(not target.exists(), switch, "wrote a file")


@test
def replies_that_never_end_are_an_error_soon():
    for switch in ("endless=404", "endless=302", "endless=503", "endless=206", "endless=headers", "endless=100"):
        result = tool("ls", f"{URL}/~{switch}/m.safetensors", code=3, most=30)
        expect(len(result.err.splitlines()) == 1, switch, result.err)


@test
def a_file_that_is_replaced_between_the_first_tries_is_read_from_its_new_beginning():
    equal(tool("ls", f"{URL}/~replaced/m.safetensors").out, tool("ls", FILES / "m.safetensors").out)


@test
def a_place_that_expires_is_asked_for_again():
    wanted = converted(FILES / "m.safetensors")
    for requests in (1, 2, 3):
        server.log()
        expect(converted(f"{URL}/~ticket={requests}/m.safetensors") == wanted, requests)
    asked = [entry["status"] for entry in server.log()]
    expect(asked.count(302) < asked.count(206) / 2, "a new place was not remembered", asked)


@test
def an_empty_reply_is_an_empty_file():
    equal(tool("ls", f"{URL}/~empty/x", code=1).err.replace(f"{URL}/~empty/x", "x"),
          tool("ls", FILES / "empty", code=1).err.replace(str(FILES / "empty"), "x"))


@test
def a_small_file_needs_no_ranges():
    equal(tool("ls", f"{URL}/~norange/small.safetensors").out, tool("ls", FILES / "small.safetensors").out)


@test
def an_object_that_changes_is_an_error():
    for switch, text in (("change=3", "has changed while it was read (ETag "), ("grow=3", "has changed")):
        target = ROOM / f"changed{next(numbers)}.zt"
        result = tool("convert", f"{URL}/~{switch}/m.safetensors", target, code=3)
        expect(text in result.err, result.err)
        expect(not target.exists(), switch)


@test
def redirects_are_followed_once_and_remembered():
    server.log()
    to = urllib.parse.quote(f"{URL}/m.safetensors", safe="")
    tool("stats", f"{URL}/~to={to}/m.safetensors")
    log = server.log()
    equal([entry["status"] for entry in log].count(302), 1)


@test
def nobody_there_is_an_error_soon():
    result = tool("ls", "http://127.0.0.1:1/x.safetensors", code=3)
    expect("cannot be reached" in result.err and result.seconds < 30, result.err, result.seconds)


@test
def urls_that_are_none_are_refused():
    for url, text in (("http://", "expected a host"), ("http://user:pass-of-test@127.0.0.1/x", "~/.netrc"),
                      ("http://127.0.0.1/a b", "without spaces")):
        expect(text in tool("ls", url, code=2).err or text in outputs[-1][1], url, outputs[-1][1])


# ---- object stores ----

@test
def objects_of_a_bucket_are_inputs():
    for path in ("m.safetensors", "m.npz", "set/model.safetensors.index.json"):
        for command in (("ls",), ("stats",), ("verify",)):
            near = tool(*command, FILES / path).out
            equal(tool(*command, f"s3://bucket/{path}", env=S3).out.replace("s3://bucket", str(FILES)), near, path)
        expect(converted(f"s3://bucket/{path}", env=S3) == converted(FILES / path), path)
    equal(tool("ls", "s3://bucket/set/", env=S3).out, tool("ls", FILES / "set").out)


@test
def keys_may_have_any_characters():
    odd = FILES / "a dir" / "k=1"
    odd.mkdir(parents=True)
    name = "mö*del+&%20.safetensors"
    (odd / name).write_bytes((FILES / "small.safetensors").read_bytes())
    wanted = tool("ls", FILES / "small.safetensors").out
    equal(tool("ls", f"s3://bucket/a dir/k=1/{name}", env=S3).out, wanted)


@test
def faults_of_a_store_that_pass_change_nothing():
    wanted = converted(FILES / "m.safetensors")
    for switch in ("fail=503x2", "cut=1000x2", "reset=70000x2"):
        expect(converted(f"s3://bucket/~{switch}/m.safetensors", env=S3) == wanted, switch)


@test
def the_region_of_a_bucket_is_found():
    server.log()
    tool("stats", "s3://bucket/m.safetensors", env=S3 | {"AWS_REGION": "us-west-9"})
    log = server.log()
    equal([entry["status"] for entry in log].count(400), 1)


@test
def wrong_credentials_are_an_error_without_them():
    result = tool("ls", "s3://bucket/m.safetensors", env=S3 | {"AWS_SECRET_ACCESS_KEY": "not-the-secret"}, code=3)
    expect("403 SignatureDoesNotMatch" in result.err, result.err)
    result = tool("ls", "s3://bucket/m.safetensors", env=STORE, code=3)
    expect("403 AccessDenied" in result.err, result.err)
    tool("ls", "s3://bucket/public/m.safetensors", env=STORE)
    expect("404 NoSuchKey" in tool("ls", "s3://bucket/none", env=S3, code=3).err)
    expect("expected s3://BUCKET/KEY" in tool("ls", "s3://b?/x", env=S3, code=2).err)


@test
def credentials_come_from_each_place():
    aws = ROOM / ".aws"
    aws.mkdir()
    new = '{"Version": 1, "AccessKeyId": "NEWKEY", "SecretAccessKey": "another/secret", ' \
          '"SessionToken": "session-token-of-the-test", "Expiration": "2099-01-02T03:04:05Z"}'
    (aws / "credentials").write_text("[other]\naws_access_key_id = WRONG\n[default]\n# a comment\n"
                                     "aws_access_key_id = TESTKEY\naws_secret_access_key=secret/of+the=test\n")
    (aws / "config").write_text("[default]\nregion = eu-test-1\n[profile by-program]\nregion = eu-test-1\n"
                                f"credential_process = echo '{new}'\n[profile broken]\n"
                                "credential_process = exit 3\n")
    (ROOM / "web-token").write_text("web+token/of=test\n")
    (ROOM / "no-profile").write_text("")
    none = {"AWS_SHARED_CREDENTIALS_FILE": str(ROOM / "no-profile"), "AWS_CONFIG_FILE": str(ROOM / "no-profile")}
    for place in ({"AWS_ENDPOINT_URL": URL},
                  {"AWS_ENDPOINT_URL": URL, "AWS_PROFILE": "by-program"},
                  STORE | none | {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{URL}/container",
                                  "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container-token"},
                  STORE | none | {"AWS_WEB_IDENTITY_TOKEN_FILE": str(ROOM / "web-token"),
                                  "AWS_ROLE_ARN": "arn:a:role/x", "AWS_ENDPOINT_URL_STS": f"{URL}/sts"},
                  STORE | none | {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": URL}):
        equal(tool("ls", "s3://bucket/small.safetensors", env=place).out,
              tool("ls", FILES / "small.safetensors").out, place)
    result = tool("ls", "s3://bucket/small.safetensors", env=STORE | {"AWS_PROFILE": "broken"}, code=3)
    expect("failed with status 3 (credential_process" in result.err, result.err)
    result = tool("ls", "s3://bucket/small.safetensors", env=STORE | {"AWS_PROFILE": "nobody"}, code=2)
    expect('AWS_PROFILE names "nobody", which is neither' in result.err, result.err)
    result = tool("ls", "s3://bucket/small.safetensors", code=2,
                  env=STORE | none | {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://10.1.2.3/x"})
    expect("neither https nor this machine" in result.err, result.err)


@test
def credentials_that_expire_soon_are_fetched_again_while_data_comes():
    place = STORE | {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{URL}/~lifetime=200/container",
                     "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_CONFIG_FILE": "/dev/null",
                     "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container-token"}
    wanted = converted(FILES / "m.safetensors")
    server.log()
    expect(converted("s3://bucket/m.safetensors", "-j", "4", env=place) == wanted)
    asked = [entry["path"] for entry in server.log()].count("/~lifetime=200/container")
    expect(asked <= 3, asked, "requests for credentials")


# ---- objects as outputs ----

def begin_upload(key):
    """Begins an upload of which nothing more is heard."""
    with urllib.request.urlopen(f"{URL}/_begin?{urllib.parse.quote(key)}") as reply:
        return reply.read().decode()


def stored(key):
    """The bytes of an object, as the server has them."""
    with urllib.request.urlopen(f"{URL}/_object?{urllib.parse.quote(key)}") as reply:
        return reply.read()


@test
def an_object_is_written_as_a_file_is():
    for source, key in (("small.safetensors", "out/small.zt"), ("m.safetensors", "out/m.zt"), ("m.npz", "out/m.npz"),
                        ("m.zt", "out/m.safetensors")):
        near = ROOM / ("near" + key.replace("/", "-"))
        tool("convert", FILES / source, near)
        tool("convert", FILES / source, f"s3://bucket/{key}", env=S3)
        equal(stored(key), near.read_bytes(), key)
    tool("convert", "s3://bucket/m.safetensors", "s3://bucket/out/far to far.zt", "--compress", "zstd", env=S3)
    tool("verify", "s3://bucket/out/far to far.zt", env=S3)


@test
def a_set_of_files_is_a_set_of_objects():
    near = ROOM / "near-set"
    near.mkdir()
    tool("convert", FILES / "m.safetensors", near / "sh.safetensors", "--shard-size", "6MiB")
    tool("convert", FILES / "m.safetensors", "s3://bucket/set of objects/sh.safetensors", "--shard-size", "6MiB", env=S3)
    expect(len(list(near.iterdir())) > 2)
    for path in near.iterdir():
        equal(stored(f"set of objects/{path.name}"), path.read_bytes(), path.name)
    tool("verify", "s3://bucket/set of objects/sh.safetensors.index.json", env=S3)
    result = tool("convert", FILES / "m.npz", "s3://bucket/two.json", "--to", "raw", code=1, env=S3)
    expect("several files of raw" in result.err, result.err)


@test
def an_object_that_exists_is_not_replaced_unless_asked():
    tool("convert", FILES / "small.safetensors", "s3://bucket/once.zt", env=S3)
    result = tool("convert", FILES / "small.safetensors", "s3://bucket/once.zt", env=S3, code=2)
    expect("already exists (--force replaces it)" in result.err, result.err)
    tool("convert", FILES / "m.safetensors", "s3://bucket/once.zt", "--force", env=S3)
    tool("convert", FILES / "small.safetensors", "s3://bucket/once.zt", "--force", env=S3)


@test
def uploads_survive_faults():
    near = ROOM / "near-faults.zt"
    tool("convert", FILES / "m.safetensors", near)
    for switch in ("fail=503x2", "completefail", "thanks"):
        tool("convert", FILES / "m.safetensors", f"s3://bucket/~{switch}/faults.zt", "--force", env=S3)
        equal(stored("faults.zt"), near.read_bytes(), switch)


@test
def an_upload_whose_last_reply_is_lost_is_done():
    for path, key in (("small.safetensors", "lost-small.zt"), ("m.safetensors", "lost.zt")):
        near = ROOM / ("near-" + key)
        tool("convert", FILES / path, near)
        tool("convert", FILES / path, f"s3://bucket/~lost/{key}", env=S3)
        expect(stored(key) == near.read_bytes(), key)


@test
def an_upload_that_fails_leaves_nothing():
    result = tool("convert", FILES / "m.safetensors", "s3://bucket/never.zt", code=3,
                  env=S3 | {"AWS_SECRET_ACCESS_KEY": "not-the-secret"})
    expect("403 access denied" in result.err, result.err)
    result = tool("convert", FILES / "m.safetensors", "s3://bucket/~fail=403/never.zt", "--force", code=3, env=S3)
    expect("cannot write" in result.err and "nothing was replaced" in result.err, result.err)
    expect("404" in tool("ls", "s3://bucket/never.zt", env=S3, code=3).err)


@test
def what_a_killed_process_left_is_listed_and_ended():
    server.log()
    killed = subprocess.Popen([TENON, "convert", FILES / "m.safetensors", "s3://bucket/~delay=300/killed.zt"],
                              env=ENVIRONMENT | S3, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = []
    for _ in range(200):                # until a part is on its way
        seen += server.log()
        if any("partNumber" in entry["query"] for entry in seen):
            break
        time.sleep(0.05)
    killed.kill()
    killed.wait()
    expect("404" in tool("ls", "s3://bucket/killed.zt", env=S3, code=3).err, "the object is there")
    listed = tool("uploads", "s3://bucket/", env=S3).out
    expect("2020-01-02T03:04:05Z  s3://bucket/killed.zt  upload-" in listed, listed, seen)
    equal(tool("uploads", "s3://bucket/other", env=S3).out, "")
    begun = [begin_upload(f"more{i} & <x>.zt") for i in range(5)]
    equal(len(tool("uploads", "s3://bucket/more", env=S3).out.splitlines()), len(begun), "pages of the list")
    equal(tool("uploads", "s3://bucket/", "--older-than", "99999d", "--abort", env=S3).out, "")
    first = json.loads(tool("uploads", "s3://bucket/more0", "--abort", "--json", env=S3).out)
    schema = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs/json/uploads.schema.json").read_text())
    equal(sorted(set(first) | {"error"}), sorted(schema["properties"]), "the fields of its JSON schema")
    equal((first["url"], first["ended"]), ("s3://bucket/more0 & <x>.zt", True))
    ended = tool("uploads", "s3://bucket/", "--abort", "--older-than", "1d", env=S3).out
    equal(ended.count("  ended"), len(listed.splitlines()) + len(begun) - 1, ended)
    equal(tool("uploads", "s3://bucket/", env=S3).out, "")
    expect("only object stores" in tool("uploads", f"{URL}/x", code=2).err)
    expect("takes a time such as" in tool("uploads", "s3://bucket/", "--older-than", "x", code=2).err)


@test
def other_urls_are_not_written():
    for url in (f"{URL}/x.zt", "hf://org/repo/x.zt"):
        result = tool("convert", FILES / "small.safetensors", url, code=1)
        expect("only s3:// URLs can be written" in result.err, result.err)


# ---- saved plans ----

PLANS = """
import ctypes, sys
tenon, word = ctypes.CDLL(sys.argv[1]), [text.encode() for text in sys.argv[2:]]
error, file, plan = ctypes.create_string_buffer(1 << 16), ctypes.c_void_p(), ctypes.c_void_p()
if len(word) == 1:
    sys.exit(tenon.tn_plan_open(word[0], ctypes.byref(plan), error))
if tenon.tn_open(word[0], None, ctypes.byref(file), error) == 0:
    tenon.tn_plan_make(file, word[1], None, ctypes.byref(plan), error)
sys.exit(tenon.tn_plan_save(plan, word[2], error))
"""


@test
def a_saved_plan_names_the_version_and_no_secret():
    library = pathlib.Path(TENON).parent / "libtenon.so"
    if b"libasan" in subprocess.run(["ldd", library], capture_output=True).stdout:
        return                          # Python cannot load it
    def python(*words):
        done = subprocess.run([sys.executable, "-c", PLANS, library, *words], env=ENVIRONMENT, capture_output=True)
        return done.returncode
    for path in ("m.safetensors?X-Amz-Signature=0123456789secret", "~change=2/m.safetensors"):
        plan = ROOM / f"plan{next(numbers)}.json"
        equal(python(f"{URL}/{path}", ROOM / "planned.zt", plan), 0, "saving")
        expect('"version"' in plan.read_text() and "secret" not in plan.read_text(), plan.read_text()[:600])
        equal(python(plan) == 0, "change" not in path, "opening a plan")


# ---- TLS ----

@test
def https_servers_need_a_certificate_that_is_trusted():
    both = ROOM / "both.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "-", "-out", ROOM / "ca.pem"],
                   check=True, stdout=open(both, "wb"), stderr=subprocess.DEVNULL)
    with open(both, "ab") as file:
        file.write((ROOM / "ca.pem").read_bytes())
    secure = Server(both)
    trust = {"CURL_CA_BUNDLE": str(ROOM / "ca.pem")}
    result = tool("ls", f"{secure.url}/m.safetensors", code=3)
    expect("certificate" in result.err and "tries" not in result.err, result.err)
    expect(converted(f"{secure.url}/m.safetensors", env=trust) == converted(FILES / "m.safetensors"))
    s3 = KEY | trust | {"AWS_ENDPOINT_URL": secure.url, "AWS_REGION": "eu-test-1"}
    tool("convert", FILES / "m.safetensors", "s3://bucket/secure.zt", env=s3)
    tool("verify", "s3://bucket/secure.zt", env=s3)
    down = urllib.parse.quote(f"{URL}/m.safetensors", safe="")
    result = tool("ls", f"{secure.url}/~to={down}/m.safetensors", env=trust, code=3)
    expect("none from https to http" in result.err, result.err)
    secure.stop()


# ---- the hub ----

@test
def models_of_the_hub_are_inputs():
    hub = {"HF_ENDPOINT": URL, "HF_TOKEN": "hf_token_of_the_test"}
    server.log()
    for name in ("hf://org/repo", "hf://org/repo@v1", "hf://org/repo/model.safetensors.index.json"):
        equal(tool("ls", name, env=hub).out, tool("ls", FILES / "set").out, name)
    log = server.log()
    expect(all(entry["headers"].get("Authorization") == "Bearer hf_token_of_the_test" for entry in log), log)
    expect("expected hf://ORG/REPO" in tool("ls", "hf://org", env=hub, code=2).err)
    expect("404" in tool("ls", "hf://org/repo/none.safetensors", env=hub, code=3).err)


@test
def a_token_goes_to_no_other_host():
    other = Server()
    to = urllib.parse.quote(f"{other.url}/set/model.safetensors.index.json", safe="")
    hub = {"HF_ENDPOINT": f"{URL}/~to={to}", "HF_TOKEN": "hf_token_of_the_test"}
    server.log()
    tool("ls", "hf://org/repo/model.safetensors.index.json", env=hub, code=None)
    expect(any("Authorization" in entry["headers"] for entry in server.log()), "no token was sent")
    log = other.log()
    expect(log and not any("Authorization" in entry["headers"] for entry in log), log)
    other.stop()


# ---- libcurl ----

@test
def libcurl_is_loaded_by_urls_only():
    near = tool("ls", FILES / "small.safetensors", env={"LD_DEBUG": "libs"})
    far = tool("ls", f"{URL}/small.safetensors", env={"LD_DEBUG": "libs"})
    expect("libcurl" not in near.err and "libcurl" in far.err, "libcurl was loaded at the wrong time")


@test
def without_libcurl_everything_local_works():
    fake = ROOM / "fake"
    fake.mkdir()
    subprocess.run(["cc", "-shared", "-xc", "/dev/null", "-o", fake / "libcurl.so.4"], check=True)
    env = {"LD_LIBRARY_PATH": str(fake)}
    tool("ls", FILES / "small.safetensors", env=env)
    result = tool("ls", f"{URL}/small.safetensors", env=env, code=1)
    expect("URLs need libcurl 7.85 or later" in result.err, result.err)
    result = tool("convert", FILES / "small.safetensors", "s3://bucket/x.zt", env=env | S3, code=1)
    expect("URLs need libcurl" in result.err, result.err)


# ---- secrets ----

@test
def queries_of_urls_are_sent_but_never_shown():
    secret = "X-Amz-Signature=0123456789secret"
    server.log()
    for command in (("ls",), ("ls", "--json"), ("stats",), ("stats", "--json"), ("verify",), ("verify", "--json")):
        tool(*command, f"{URL}/small.safetensors?{secret}")
        tool(*command, f"{URL}/none.safetensors?{secret}", code=3)
        tool(*command, f"{URL}/m.safetensors?{secret}", f"{URL}/set/model.safetensors.index.json?{secret}")
    tool("convert", f"{URL}/small.safetensors?{secret}", ROOM / "s.zt", "--json")
    tool("convert", f"{URL}/small.safetensors?{secret}", f"{URL}/none?{secret}", ROOM / "s2.zt", "--json", code=3)
    tool("diff", f"{URL}/small.safetensors?{secret}", f"{URL}/m.safetensors?{secret}", "--json", code=1)
    tool("convert", f"{URL}/small.safetensors?{secret}", ROOM / "s3.zt", "--dry-run")
    expect(any(secret in entry["query"] for entry in server.log()), "the query was not sent")


@test
def no_secret_appears_anywhere():
    words = ("0123456789secret", "pass-of-test", "secret/of+the=test", "another/secret", "session-token-of", "hf_token_of",
             "not-the-secret", "container-token", "web+token")
    written_by_tests = (".aws/credentials", ".aws/config", "web-token")
    for arguments, text in outputs:
        for word in words:
            expect(word not in text, f"tenon {arguments}: {word} is in {text}")
    for folder, _, names in os.walk(ROOM):
        for name in names:
            path = os.path.join(folder, name)
            if path.endswith(written_by_tests):
                continue
            with open(path, "rb") as file:
                data = file.read()
            expect(not any(word.encode() in data for word in words), name)


run_all()
