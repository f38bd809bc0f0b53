"""test_schema.py TOOL: docs/wia-ai-011.schema.json and tn_descriptor_check() on the same documents.

The schema is run by the Python package `jsonschema`, the check through libtenon.so, which is beside TOOL.  Good
documents pass both.  A bad one is refused by Tenon, and by the schema where its first expected line says so.  Then every
member of every good document is replaced by wrong ones: what the schema refuses, Tenon must refuse too."""
import copy
import ctypes
import json
import pathlib
import sys

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/descriptor"
LIBRARY = pathlib.Path(sys.argv[1]).resolve().parent / "libtenon.so"
WRONG = [None, True, -1, 1.5, 1 << 70, "", "0x", "a b", [], [-1], [[]], {}, {"a": 1}]


class Finding(ctypes.Structure):
    _fields_ = [("remark", ctypes.c_bool), ("path", ctypes.c_char_p), ("text", ctypes.c_char_p)]


REPORT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Finding))


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("strict", ctypes.c_bool), ("report", REPORT), ("context", ctypes.c_void_p)]


class Failure(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("reason", ctypes.c_int), ("offset", ctypes.c_uint64),
                ("file", ctypes.c_char * 256), ("tensor", ctypes.c_char * 128), ("value", ctypes.c_char * 64),
                ("text", ctypes.c_char * 480)]


def load_library():
    tenon = ctypes.CDLL(str(LIBRARY))
    tenon.tn_descriptors_parse.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Failure)]
    tenon.tn_descriptors_count.argtypes = [ctypes.c_void_p]
    tenon.tn_descriptors_count.restype = ctypes.c_size_t
    tenon.tn_descriptors_at.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    tenon.tn_descriptors_at.restype = ctypes.c_void_p
    tenon.tn_descriptors_free.argtypes = [ctypes.c_void_p]
    tenon.tn_descriptor_check.argtypes = [ctypes.c_void_p, ctypes.POINTER(Options), ctypes.POINTER(ctypes.c_size_t),
                                          ctypes.POINTER(Failure)]
    return tenon


TENON = load_library()


def findings(text):
    """What Tenon finds wrong in a document: a line each."""
    raw, document, failure, lines = text.encode(), ctypes.c_void_p(), Failure(), []
    if TENON.tn_descriptors_parse(raw, len(raw), ctypes.byref(document), ctypes.byref(failure)):
        return [failure.text.decode()]

    def report(_, found):
        if not found.contents.remark:
            lines.append(f"{found.contents.path.decode()}: {found.contents.text.decode()}")

    options, wrong, total = Options(ctypes.sizeof(Options), False, REPORT(report), None), ctypes.c_size_t(), 0
    for i in range(TENON.tn_descriptors_count(document)):
        status = TENON.tn_descriptor_check(TENON.tn_descriptors_at(document, i), ctypes.byref(options), ctypes.byref(wrong),
                                           ctypes.byref(failure))
        assert status == 0, failure.text
        total += wrong.value
    TENON.tn_descriptors_free(document)
    assert total == len(lines)
    return lines


def load_schema():
    schema = json.loads((ROOT / "docs/wia-ai-011.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


SCHEMA = load_schema()


def check_good(path):
    text = path.read_text()
    errors = [error.message for error in SCHEMA.iter_errors(json.loads(text))]
    assert not errors, f"the schema refuses it: {errors[0]}"
    assert not findings(text), findings(text)


def check_bad(path, verdicts):
    text = path.read_text()
    expected = path.with_suffix(".expect").read_text().split("\n")[0]
    found = "schema accepts" if SCHEMA.is_valid(json.loads(text)) else "schema refuses"
    assert findings(text), "nothing is found wrong"
    assert found == expected, f"expected \"{expected}\" but found \"{found}\""
    verdicts[found] = verdicts.get(found, 0) + 1


def places(value, place=()):
    """Where a document has a value: the keys and numbers that lead there."""
    yield place
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*place, key))


def replaced(document, place, value):
    if not place:
        return value
    changed = copy.deepcopy(document)
    target = changed
    for key in place[:-1]:
        target = target[key]
    if value is WRONG:                  # leave it out
        del target[place[-1]]
    else:
        target[place[-1]] = value
    return changed


def check_replaced(path, counts):
    """Nothing that the schema refuses is accepted by Tenon."""
    document = json.loads(path.read_text())
    for place in places(document):
        for value in [*WRONG, WRONG] if place else WRONG:
            changed = replaced(document, place, value)
            refused, wrong = not SCHEMA.is_valid(changed), findings(json.dumps(changed))
            assert wrong or not refused, f"only the schema refuses {json.dumps(changed)} (at {place})"
            verdict = "both refuse" if refused else "only Tenon refuses" if wrong else "both accept"
            counts[verdict] = counts.get(verdict, 0) + 1


def main():
    passed = failed = 0
    verdicts, counts = {}, {}
    good = sorted(GOLDEN.glob("good/*.json")) + sorted(GOLDEN.glob("specification/*.json"))
    bad = sorted(GOLDEN.glob("bad/*.json"))
    tests = [(f"{p.parent.name}/{p.stem}", check_good, (p,)) for p in good] + [(f"bad/{p.stem}", check_bad, (p, verdicts)) for p in bad] + \
            [(f"{p.parent.name}/{p.stem}, a member replaced", check_replaced, (p, counts)) for p in good]
    for name, test, arguments in tests:
        try:
            test(*arguments)
            passed += 1
        except AssertionError as problem:
            print(f"FAIL  {name}: {problem}")
            failed += 1
    if not good or not bad:
        print("FAIL  no documents")
        failed += 1
    print(f"ok    {len(good)} good documents; {len(bad)} bad ones: " +
          ", ".join(f"{n} where the {verdict}" for verdict, n in sorted(verdicts.items())))
    print("ok    members replaced: " + ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items())))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
