"""tests/export/export.py TENON [TEST...]: what "tenon export-c" writes, compiled, run and compared with the file it came from."""
import itertools
import json
import os
import pathlib
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "system"))
from system import MIB, TENON, Skip, _tests, contents, is_sanitized, run_tests, tenon, test      # noqa: E402

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
MORE_WARNINGS = ["-Wcast-qual", "-Wcast-align", "-Wconversion", "-Wshadow", "-Wundef", "-Wstrict-prototypes", "-Wmissing-prototypes",
                 "-Wredundant-decls", "-Wwrite-strings", "-Wmissing-declarations"]
CLANG = next((f"clang-{n}" for n in range(30, 10, -1) if shutil.which(f"clang-{n}")), None)
C = ["c99", "c11", "c17"]
CXX = ["c++11", "c++17", "c++20"]
VERSIONS = ["1.0", "1.1", "2.0"]


# ---- input files ----

def write_floats(path, tensors):
    """A safetensors file: name -> (shape, values)."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        piece = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_floats(path):
    """name -> (shape, values), in the order of the data."""
    raw = contents(path)
    size = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
    header.pop("__metadata__", None)
    found = {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        found[name] = (entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]))
    return found


def codes(count, low, high, seed):
    """Integers of which the first two are the lowest and the highest."""
    generator = random.Random(seed)
    return [low, high] + [generator.randint(low, high) for _ in range(count - 2)]


def per_axis(zeros, scales, low, seed):
    """Rows of values whose range gives back just these scales and zero points."""
    return [(code - zero) * scale for row, (zero, scale) in enumerate(zip(zeros, scales))
            for code in codes(10, low, 127, seed + row)]


FIXED = {
    "conv1.weight": ([4, 3, 2, 5], [c / 4096 for c in codes(120, -32767, 32767, 1)], "i16,per=tensor,scale=0.000244140625"),
    "conv1.bias": ([4], [c / 128 for c in codes(4, -127, 127, 2)], "i8,per=tensor,scale=0.0078125"),
    "fine": ([3], [c / 2**40 for c in codes(3, -127, 127, 3)], f"i8,per=tensor,scale={2**-40!r}"),
    "scalar": ([], [0.75], "i16,per=tensor,scale=0.0625"),
    "wide": ([70], [float(c) for c in codes(70, -32767, 32767, 4)], "i16,per=tensor,scale=1"),
}
SCALED = {
    "asymmetric": ([2, 3], [(c - 5) * 101 / 8192 for c in codes(6, -128, 127, 5)], "i8,per=tensor,scale=0.0123291015625,zero=5"),
    "large": ([5, 1], [(c + 300) * 3 / 512 for c in codes(5, -500000, 500000, 6)], "i32,per=tensor,scale=0.005859375,zero=-300"),
    "plain32": ([4], [c / 8 for c in codes(4, -99999, 99999, 7)], "i32,per=tensor,scale=0.125"),
    "rows": ([3, 10], per_axis([0] * 3, [3 / 64, 12345 / 65536, 1 / 2], -127, 8), "i8,per=channel,axis=0"),
    "rows.zero": ([3, 2, 5], per_axis([7, -100, 0], [5 / 64, 321 / 4096, 1 / 128], -128, 9),
                  "i8,per=channel,axis=0,zero=asymmetric"),
    "columns": ([2, 3], [-127 / 4, 127 / 64, 127 / 2, 1 / 4, 2 / 64, 3 / 2], "i8,per=channel,axis=1"),
    "extreme": ([2], [-2.0**30, 2.0**30 - 64], "i32,per=tensor,scale=0.5,zero=0"),
    "coarse": ([2], [-127 * 640.0, 5 * 640.0], "i8,per=tensor,scale=640"),
}
FLOATS = {
    "floats": ([11], [0.0, -0.0, 1.0, 0.1, -3.25e10, 1e-40, 1.401298464324817e-45, 3.4028234663852886e38, 16777217.0, 1e20, 2 / 3], None),
}
MODELS = {"1.0": FIXED, "1.1": {**FIXED, **SCALED}, "2.0": {**FIXED, **SCALED, **FLOATS}}


def make_model(folder, tensors, name="model.zt", options=()):
    """Codes with scales of tensors that are given as values; returns the path and the values."""
    source, path, back = (os.path.join(folder, f) for f in ("in.safetensors", name, "back.safetensors"))
    write_floats(source, {key: (shape, values) for key, (shape, values, _) in tensors.items()})
    casts = [word for key, (_, _, cast) in tensors.items() if cast for word in ("--cast", f"{key}={cast}")]
    tenon("convert", "--quiet", "--force", source, path, *casts, *options)
    tenon("convert", "--quiet", "--force", path, back, "--cast", "f32", "--drop-metadata")
    found = read_floats(back)
    for key, (shape, values, _) in tensors.items():     # the codes say exactly what was meant
        assert found[key] == (shape, struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}f", *values))), key
    return path, found


def exported(folder, path, mli, *options):
    """The folder it was exported into, under the name "model"."""
    out = os.path.join(folder, "out" + mli + "".join(options).replace("/", "_"))
    tenon("export-c", "--quiet", path, "-o", out, "--mli", mli, "--name", "model", *options)
    return out


# ---- compilers ----

def compilers():
    """(program, arguments, standards, language) of every compiler that is here."""
    yield "gcc", [], C, "c"
    yield "g++", [], CXX, "c++"
    if CLANG:
        yield CLANG, [], C, "c"
        yield CLANG, [], CXX, "c++"
    if shutil.which("arm-none-eabi-gcc"):
        arm = ["-mthumb", "-mcpu=cortex-m4", "-ffreestanding"]
        yield "arm-none-eabi-gcc", arm, C, "c"
        yield "arm-none-eabi-gcc", arm, CXX, "c++"


def compile_with(command, *arguments, fails=False):
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, f"{' '.join([*command, *map(str, arguments)])}\n{done.stdout}{done.stderr}"
    return done.stderr


def headers(mli, embarc):
    return ["-I", ROOT / "include", *(["-DTENON_USE_EMBARC", "-I", HERE / "embarc" / mli] if embarc else [])]


def run_values(out, mli, language, standard, embarc=False):
    """What values.c prints of an export: name -> (shape, values)."""
    compiler, program = {"c": "gcc", "c++": "g++"}[language], os.path.join(out, "values")
    image = os.path.exists(os.path.join(out, "model.bin"))
    sources = [HERE / "values.c", *([] if image else [os.path.join(out, "model.c")]), ROOT / "src/firmware/mli.c"]
    compile_with([compiler], "-x", language, f"-std={standard}", *WARNINGS, *headers(mli, embarc), "-I", out,
                 f"-DMLI={mli.replace('.', '')}", *(["-DIMAGE"] if image else []), *sources, "-lm", "-o", program)
    printed = subprocess.run([program, os.path.join(out, "model.bin")] if image else [program], capture_output=True, text=True)
    assert printed.returncode == 0, printed
    found = {}
    for line in printed.stdout.splitlines():
        name, status, shape, *values = line.split(" ")
        name = bytes.fromhex(name).decode()
        assert status == "0", f"{name}: the check says {status}"
        assert name not in found, name
        found[name] = ([int(n) for n in shape.split(",")], tuple(float.fromhex(v) for v in values))
    return found


def check_values(found, expected):
    assert list(found) == list(expected), (list(found), list(expected))
    for name, (shape, values) in expected.items():
        assert found[name][0] == (shape or [1]), (name, found[name][0], shape)
        assert list(map(repr, found[name][1])) == list(map(repr, values)), (name, found[name][1], values)


# ---- tests ----

@test
def every_version_has_the_values_of_the_file(folder):
    runs = 0
    for mli, embarc in itertools.product(VERSIONS, (False, True)):
        path, values = make_model(folder, MODELS[mli])
        for options in ((), ("--binary",)):
            out = exported(folder, path, mli, *options, *(["--force"] if embarc else []))
            for language, standard in (("c", "c99"), ("c++", "c++11")):
                check_values(run_values(out, mli, language, standard, embarc), values)
                runs += 1
    return f"{runs} programs"


@test
def sources_compile_without_warnings(folder):
    runs = 0
    for mli in VERSIONS:
        path, _ = make_model(folder, MODELS[mli])
        source, image = exported(folder, path, mli, "--section", ".mli_data"), exported(folder, path, mli, "--binary")
        user = os.path.join(image, "user.c")
        pathlib.Path(user).write_text('#include "model.h"\n#include "model.h"\nint nothing;\n')
        for (program, arguments, standards, language), embarc in itertools.product(compilers(), (False, True)):
            for standard in standards:
                compile_with([program], *arguments, "-x", language, f"-std={standard}", *WARNINGS, *headers(mli, embarc), "-fsyntax-only",
                             "-I", image, os.path.join(source, "model.c"))
                compile_with([program], *arguments, "-x", language, f"-std={standard}", *WARNINGS, *headers(mli, embarc), "-fsyntax-only",
                             user)
                runs += 2
        for program in filter(None, ("gcc", CLANG)):     # projects may ask for more
            for file in (os.path.join(source, "model.c"), user):
                compile_with([program], "-std=c99", *WARNINGS, *MORE_WARNINGS, *headers(mli, False), "-fsyntax-only", file)
    return f"{runs} runs of {len(list(compilers()))} compilers"


@test
def the_stand_in_for_embarc_has_its_offsets(folder):
    """What the tests of <tenon/mli.h> say of our structures, said of the stand-in's."""
    ours = {"1.0": "tn_mli10", "1.1": "tn_mli11", "2.0": "tn_mli20"}
    arm = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-ffreestanding"]
    targets = {64: ["gcc"], **({32: arm} if shutil.which(arm[0]) else {})}
    lines = 0
    for bits, command in targets.items():
        text = subprocess.run([ROOT / "tests/mli/layout", ROOT / "tests/golden/mli/struct_layout.json", str(bits)],
                              capture_output=True, text=True, check=True).stdout
        for mli, prefix in ours.items():
            wanted = [line for line in text.splitlines() if prefix + "_" in line]
            lines += len(wanted)
            source = os.path.join(folder, f"layout{mli}.c")
            body = "\n".join(wanted).replace(prefix + "_container", "mli_data_container").replace(prefix, "mli")
            pathlib.Path(source).write_text(f"#include <stddef.h>\n#include \"mli_types.h\"\n{body}\n")
            compile_with(command, "-std=c11", *WARNINGS, "-fsyntax-only", "-I", HERE / "embarc" / mli, source)
    assert lines > 40, lines
    return f"{lines} facts"


def arm_sections(folder, source, mli, language, *options):
    """Section -> size and alignment of what is not empty, of an object for Cortex-M."""
    if not shutil.which("arm-none-eabi-gcc"):
        raise Skip("there is no arm-none-eabi-gcc (Debian: gcc-arm-none-eabi)")
    target = os.path.join(folder, "model.o")
    compile_with(["arm-none-eabi-gcc"], "-mthumb", "-mcpu=cortex-m4", "-ffreestanding", "-x", language, *headers(mli, False), "-c", source, "-o",
                 target, *options)
    table = subprocess.run(["arm-none-eabi-objdump", "-h", target], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in table.splitlines() if line.strip() and line.split()[0].isdigit()]
    sections = {row[1]: (int(row[2], 16), 1 << int(row[6].split("**")[1])) for row in rows}
    return {name: facts for name, facts in sections.items() if facts[0] and not name.startswith((".comment", ".ARM"))}


@test
def everything_is_constant_and_where_it_was_asked_to_be(folder):
    for mli, language in itertools.product(VERSIONS, ("c", "c++")):
        path, _ = make_model(folder, MODELS[mli])
        out = exported(folder, path, mli, "--section", ".mli_data", "--align", "32", "--force")
        source = os.path.join(out, "model.c")
        plan = json.loads(subprocess.run([TENON, "export-c", "--json", "--plan", path, "--mli", mli, "--align", "32", "--section",
                                          ".mli_data"], capture_output=True, text=True, check=True).stdout)
        bytes_of = {row["what"]: row["bytes"] for row in plan["sections"]}
        sections = arm_sections(folder, source, mli, language)
        assert sections.pop(".mli_data") == (bytes_of["data"], 32), (sections, bytes_of)
        assert {name.split(".str")[0] for name in sections} == {".rodata"}, sections
        gaps = sum(size for size, _ in sections.values()) - bytes_of["names"] - bytes_of["parameters"] - bytes_of["structures"]
        assert 0 <= gaps < 8 * len(MODELS[mli]), (sections, bytes_of)       # compilers align texts and arrays of bytes
        assert plan["total"] == sum(bytes_of.values())
        assert plan["largest"] == {"name": "conv1.weight", "bytes": 240}
        moved = arm_sections(folder, source, mli, language, '-Dmodel_SECTION=__attribute__((section(".elsewhere")))',
                             "-Dmodel_ALIGN=__attribute__((aligned(64)))")
        assert moved[".elsewhere"][1] == 64 and ".mli_data" not in moved, moved


@test
def tensors_are_the_same_on_a_32_bit_processor(folder):
    if not shutil.which("arm-none-eabi-gcc") or not shutil.which("qemu-arm"):
        raise Skip("there is no arm-none-eabi-gcc or no qemu-arm (Debian: gcc-arm-none-eabi, qemu-user)")
    bare = ["-std=c99", *WARNINGS, "-ffreestanding", "-nostdlib", "-static", "-fno-pic", "-fno-stack-protector", "-Os"]
    arm = ["arm-none-eabi-gcc", "-marm", "-march=armv7-a", "-mfloat-abi=soft"]
    for mli in VERSIONS:
        path, _ = make_model(folder, MODELS[mli])
        out, digests = exported(folder, path, mli), []
        for command, runner in ((["gcc"], []), (arm, ["qemu-arm"])):
            program = os.path.join(out, "device")
            compile_with(command, *bare, f"-DMLI={mli.replace('.', '')}", *headers(mli, False), "-I", out, HERE / "device.c",
                         os.path.join(out, "model.c"), ROOT / "src/firmware/mli.c", *(["-lgcc"] if runner else []), "-o", program)
            digests.append(subprocess.run([*runner, program], capture_output=True, text=True, check=True).stdout)
        assert digests[0] == digests[1] and len(digests[0]) == 9, digests


@test
def the_same_file_gives_the_same_bytes(folder):
    path, _ = make_model(folder, MODELS["2.0"])
    packed, _ = make_model(folder, MODELS["2.0"], "packed.zt", ["--compress", "zstd", "--checksum", "crc32c"])
    for options in ((), ("--binary",)):
        out = exported(folder, path, "2.0", *options)
        for source, more in ((path, []), (path, ["--io", "pread"]), (packed, [])):
            again = os.path.join(folder, "again")
            tenon("export-c", "--quiet", source, "-o", again, "--mli", "2.0", "--name", "model", *options, *more)
            assert sorted(os.listdir(out)) == sorted(os.listdir(again)) and len(os.listdir(out)) == 2
            for name in os.listdir(out):
                assert contents(os.path.join(out, name)) == contents(os.path.join(again, name)), name
            shutil.rmtree(again)


HOSTILE = ["*/ int x; /*", "/*", "a\nb", "#error\n#error", "??/", "??/\n", "ends in \\", '"', '", 0 }, { "', "\u00e9t\u00e9", "\u65e5\u672c", "int", "1",
           "class", "_", "__x__", "a.b", "a_b", "a b", "a__b", "a.b.2", "a_b_2", "A.B", "%s%n", "\u202etxt", "\t", "tensor", "x" * 1000,
           "x" * 999 + "y", "data_a", "//", "*", "/", "\\", "?", "???=", "'", "$", "\x7f", "\U0001f600"]


@test
def hostile_names_stay_names(folder):
    tensors = {name: ([2], [i / 128, -i / 128]) for i, name in enumerate(HOSTILE)}
    source, path = os.path.join(folder, "in.safetensors"), os.path.join(folder, "names.zt")
    write_floats(source, tensors)
    tenon("convert", "--quiet", source, path, "--cast", "i8,per=tensor,scale=0.0078125")
    for options, (language, standard) in itertools.product(((), ("--binary",)), (("c", "c99"), ("c++", "c++11"))):
        out = exported(folder, path, "1.0", *options, "--force")
        check_values(run_values(out, "1.0", language, standard), tensors)
        text = contents(os.path.join(out, "model.h"))
        assert b"\n#error\n" not in text and not any(byte < 32 and byte != 10 for byte in text) and b"\x7f" not in text
        assert "\u202e".encode() not in text
        for name, arguments in (("gcc", ["-trigraphs"]), ("gcc", ["-std=c99", "-Wtrigraphs", "-Wcomment"]), (CLANG, ["-trigraphs"])):
            if name and not options:
                compile_with([name], *arguments, *WARNINGS, *headers("1.0", False), "-fsyntax-only", os.path.join(out, "model.c"))
    return f"{len(HOSTILE)} names"


def identifiers(path, *options):
    plan = subprocess.run([TENON, "export-c", "--json", "--plan", path, "--name", "m", *options], capture_output=True, text=True, check=True)
    return {row["name"]: row["identifier"].removeprefix("m_tensor_") for row in json.loads(plan.stdout)["tensors"]}


@test
def identifiers_are_different_and_depend_on_names_alone(folder):
    source, path = os.path.join(folder, "in.safetensors"), os.path.join(folder, "names.zt")
    names = ["a.b", "a b", "a_b", "a-b", "a.b.2", "a_b_2", "a_b_3", "a/b", "", "*", "..", "x" * 96, "x" * 97, "x" * 98, "3"]
    write_floats(source, {name: ([1], [0.5]) for name in names})
    tenon("convert", "--quiet", source, path, "--cast", "i8,per=tensor,scale=0.0078125")
    found = identifiers(path)
    assert found == {"a.b": "a_b_4", "a b": "a_b_5", "a_b": "a_b", "a-b": "a_b_6", "a.b.2": "a_b_2_2", "a_b_2": "a_b_2", "a_b_3": "a_b_3",
                     "a/b": "a_b_7", "": "unnamed", "*": "unnamed_2", "..": "unnamed_3", "x" * 96: "x" * 96, "x" * 97: "x" * 96 + "_2",
                     "x" * 98: "x" * 96 + "_3", "3": "3"}, found
    assert identifiers(path, "--only", "a*") == {name: word for name, word in found.items() if name.startswith("a")}
    assert identifiers(path, "--only", "a/b") == {"a/b": "a_b_7"}


@test
def a_header_of_another_source_is_noticed(folder):
    path, _ = make_model(folder, FIXED)
    one = exported(folder, path, "1.0")
    path, _ = make_model(folder, {**FIXED, "conv1.bias": ([4], [0.5, 0.25, 0.0, -0.5], "i8,per=tensor,scale=0.0078125")})
    other = exported(folder, path, "1.0", "--align", "8")
    shutil.copy(os.path.join(other, "model.h"), one)
    said = compile_with(["gcc"], *headers("1.0", False), "-fsyntax-only", os.path.join(one, "model.c"), fails=True)
    assert "model.h belongs to another model.c" in said, said


@test
def padding_is_left_out(folder):
    values = [c / 16 for c in codes(2 * 3 * 5, -127, 127, 11)]
    source, path = os.path.join(folder, "in.safetensors"), os.path.join(folder, "padded.json")
    write_floats(source, {"w": ([2, 3, 5], values)})
    tenon("convert", "--quiet", source, path, "--cast", "i8,per=tensor,scale=0.0625", "--pad", "2=8", "--drop-names", "--to", "raw")
    listing = subprocess.run([TENON, "ls", "-l", path], capture_output=True, text=True, check=True).stdout
    assert "8]" in listing, listing
    out = exported(folder, path, "2.0")
    found = run_values(out, "2.0", "c", "c99")
    assert list(found.values()) == [([2, 3, 5], tuple(values))], found


@test
def what_casts_to_fixed_point_make_has_its_values(folder):
    """From floats on, as people do it: the values are those that "tenon convert --cast f32" gives back."""
    generator = random.Random(21)
    tensors = {f"layer{i}.{what}": (shape, [generator.gauss(0, 10**(i - 3)) for _ in range(count)])
               for i in range(5) for what, shape, count in (("weight", [4, 3, 3, 2], 72), ("bias", [4], 4))}
    source, path, back = (os.path.join(folder, name) for name in ("in.safetensors", "cast.zt", "back.safetensors"))
    write_floats(source, tensors)
    runs = 0
    for cast, versions in (("fx8,frac=auto", VERSIONS), ("fx16,frac=auto", VERSIONS), ("fx16,frac=least", VERSIONS), ("fx16,frac=9", VERSIONS),
                           ("sa8", VERSIONS[1:]), ("sa8,per=channel,axis=0", VERSIONS[1:]), ("sa32", VERSIONS[1:]), ("f32", VERSIONS[2:])):
        tenon("convert", "--quiet", "--force", source, path, "--cast", cast)
        tenon("convert", "--quiet", "--force", path, back, "--cast", "f32", "--drop-metadata")
        for mli, options in itertools.product(versions, ((), ("--binary",))):
            out = exported(folder, path, mli, "--force", *options)
            found = {name: (shape, struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}f", *values)))
                     for name, (shape, values) in run_values(out, mli, "c", "c99").items()}     # codes of 32 bits are rounded once
            check_values(found, read_floats(back))
            runs += 1
    return f"{runs} programs"


def blocks(page):
    """The commands of a page, and its C source."""
    commands, sources, fenced = [], [], None
    for line in re.sub(r"\\\n +", "", page).splitlines():
        if line.startswith("```"):
            fenced = [] if fenced is None else sources.append("\n".join(fenced) + "\n")
        elif fenced is not None:
            fenced.append(line)
        elif line.startswith("    $ "):
            commands.append(line[6:])
    return commands, sources


@test
def the_commands_of_the_page_work(folder):
    generator = random.Random(31)
    commands, (main, flash) = blocks((ROOT / "docs/firmware.md").read_text())
    write_floats(os.path.join(folder, "model.safetensors"), {
        "conv1.weight": ([8, 3, 3, 3], [generator.gauss(0, 0.1) for _ in range(216)]), "conv1.bias": ([8], [generator.gauss(0, 1) for _ in range(8)])})
    pathlib.Path(folder, "main.c").write_text(main)
    os.mkdir(os.path.join(folder, "bin"))
    os.symlink(TENON, os.path.join(folder, "bin", "tenon"))
    environment = {**os.environ, "TENON": str(ROOT), "PATH": os.path.join(folder, "bin") + ":" + os.environ["PATH"]}
    left_out = 0
    for command in commands:
        if not shutil.which(command.split()[0], path=environment["PATH"]) and not command.startswith("./"):
            left_out += 1
            continue
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    pathlib.Path(folder, "flash", "flash.c").write_text(flash)
    compile_with(["gcc"], "-std=c99", *WARNINGS, *headers("1.0", False), "-fsyntax-only", os.path.join(folder, "flash", "flash.c"))
    return f"{len(commands) - left_out} commands" + (f", {left_out} left out" if left_out else "")


REFUSED = [     # tensors, options, what the message says
    ({"w": ([2], [1.0, 2.0], None)}, ["--mli", "1.0"], 'tensor "w": MLI 1.0 has no fp32: use MLI 2.0, or cast it to fx16,frac=auto (--mli 2.0)'),
    ({"w": ([2], [1.0, 2.0], "f16")}, ["--mli", "2.0"], 'tensor "w": MLI has no structure for plain float16 ("tenon convert --cast fx16,frac=auto" first'),
    ({"w": ([2], [1.0, 2.0], "i16")}, [], 'tensor "w": MLI has no structure for plain int16: cast it to float32, and that to fx16,frac=auto'),
    ({"w": ([2], [1.0, 2.0], "u8,per=tensor")}, ["--mli", "2.0"], 'tensor "w": MLI has no structure for uint8 ("tenon convert --cast fx8,frac=auto" first'),
    ({"w": ([2], [1.0, 2.0], "i16,per=tensor,scale=0.75")}, ["--mli", "2.0"], "no structure for int16 but with one scale that is a power of two"),
    ({"w": ([2], [1.0, 2.0], "i16,per=channel,axis=0")}, ["--mli", "2.0"], "no structure for int16 but with one scale that is a power of two"),
    ({"w": ([2], [1.0, 2.0], "i8,per=tensor,scale=0.75")}, [], 'tensor "w": MLI 1.0 has no sa8: use MLI 1.1 or 2.0, or cast it to fx8,frac=auto (--mli 2.0)'),
    ({"w": ([2], [1.0, 2.0], "i8,per=tensor,scale=0.1")}, ["--mli", "2.0"],
     'tensor "w": scale 0.100000001 at 0 is no integer of 15 bits with 18 fractional bits: cast it to float32, and that to sa8'),
    ({"w": ([2, 1], [1e-12, 1e6], "i8,per=channel,axis=0")}, ["--mli", "1.1"], 'is no integer of 31 bits with'),
    ({"w": ([2], [4.0, 8.0], "i8,per=tensor,scale=4")}, [],
     'tensor "w": frac_bits is -2, MLI 1.0 expects 0 to 255: use MLI 2.0, or cut larger values ("tenon convert --cast fx8,frac=0" first'),
    ({"w": ([1], [0.0], f"i8,per=tensor,scale={2**-140!r}")}, ["--mli", "2.0"],
     'frac_bits is 140, MLI 2.0 expects -128 to 127 ("tenon convert --cast fx8,frac=auto" first'),
    ({"w": ([1, 1, 1, 1, 2], [1.0, 2.0], "i8,per=tensor,scale=0.5")}, [], 'tensor "w": it has 5 dimensions, MLI at most 4: leave it out (--only or --exclude)'),
    ({"w": ([2, 0], [], "i8,per=tensor,scale=0.5")}, [], 'tensor "w": it is empty, MLI expects at least one element: leave it out (--only or --exclude)'),
    ({"w": ([2, 2], [0.0, 1.0, 0.0, 0.0], "FORM=coo")}, ["--mli", "2.0"], 'no structure for form coo ("tenon convert --form dense" first)'),
    ({"w": ([1, 32], [1.0] * 32, "mxfp4")}, ["--mli", "2.0"], 'no structure for codes of datatype'),
    ({"w": ([2], [1.0, 2.0], "i8,per=tensor,scale=0.5,zero=40000")}, ["--mli", "2.0"], None),
    ({"x" * 1001: ([1], [0.5], "i8,per=tensor,scale=0.5")}, [], "a name of 1001 bytes, at most 1000 can be in a text"),
    ({"w": ([2], [1.0, float("nan")], None)}, ["--mli", "2.0"], 'tensor "w": element 1 is infinite or NaN, which C has no constant for (--binary takes it)'),
]


def follow_advice(folder, path, casts, options):
    """The casts that a message names, one after the other, lead to what can be exported."""
    for cast in casts:
        tenon("convert", "--quiet", "--force", path, path, "--cast", cast)
    if casts:
        out = os.path.join(folder, "advised")
        tenon("export-c", "--quiet", "--force", path, "-o", out, *options)
        shutil.rmtree(out)


@test
def what_mli_has_no_structure_for_is_refused(folder):
    for tensors, options, expected in REFUSED:
        source, path, out = (os.path.join(folder, name) for name in ("in.safetensors", "in.zt", "out"))
        write_floats(source, {name: (shape, values) for name, (shape, values, _) in tensors.items()})
        cast = next(iter(tensors.values()))[2]
        rules = [] if not cast else ["--form", cast[5:]] if cast.startswith("FORM=") else ["--cast", cast]
        made = subprocess.run([TENON, "convert", "--quiet", "--force", source, path, *rules], capture_output=True, text=True)
        if expected is None:    # no file can say it
            assert made.returncode != 0, tensors
            continue
        assert made.returncode == 0, made
        said = tenon("export-c", path, "-o", out, *options, code=1)
        assert said.startswith(f"tenon: {path}: ") and expected in said and said.count("\n") == 1, said
        assert not os.path.exists(out), "a folder was left behind"
        casts = [re.findall(words + r" ([a-z0-9=]+(?:,[a-z0-9=]+)*)", said) for words in ("--cast", "and that to")]
        follow_advice(folder, path, casts[0] + casts[1], options)
    return f"{len(REFUSED)} files"


@test
def bad_options_are_refused(folder):
    path, _ = make_model(folder, FIXED)
    out = os.path.join(folder, "out")
    for options, expected in ((["--name", "2x"], "expected letters"), (["--name", "a__b"], "at most 63"),
                              (["--name", "x" * 64], "at most 63"), (["--name", ""], "at most 63"), (["--align", "2"], "from 4 to 4096"),
                              (["--align", "8192"], "from 4 to 4096"), (["--align", "12"], "power of two"), (["--section", 'a" b'], "at most 200"),
                              (["--section", ""], "at most 200"), (["--section", "x" * 201], "at most 200"),
                              (["--only", "nothing"], 'no tensor matches "nothing"'), (["--mli", "3"], "takes 1.0|1.1|2.0"), (["--binary", "--section", "x"], "--section")):
        said = tenon("export-c", path, "-o", out, *options, code=2)
        assert expected in said and not os.path.exists(out), said
    assert "expected -o DIR" in tenon("export-c", path, code=2)


@test
def files_that_are_there_are_kept_or_replaced(folder):
    path, _ = make_model(folder, FIXED)
    out = exported(folder, path, "1.0")
    before = contents(os.path.join(out, "model.c"))
    said = tenon("export-c", path, "-o", out, "--name", "model", "--align", "64", code=2)
    assert "already exists" in said and "(--force replaces it)" in said and "model.c" in said, said
    assert contents(os.path.join(out, "model.c")) == before
    os.remove(os.path.join(out, "model.c"))
    said = tenon("export-c", path, "-o", out, "--name", "model", "--align", "64", code=2)
    assert "model.h" in said and os.listdir(out) == ["model.h"], (said, os.listdir(out))
    tenon("export-c", "--quiet", path, "-o", out, "--name", "model", "--align", "64", "--force")
    assert sorted(os.listdir(out)) == ["model.c", "model.h"] and contents(os.path.join(out, "model.c")) != before


@test
def a_write_that_fails_leaves_everything_as_it_was(folder):
    path, _ = make_model(folder, {"w": ([200000], [c / 128 for c in codes(200000, -127, 127, 12)], "i8,per=tensor,scale=0.0078125")})
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (MIB // 8, MIB // 8))     # noqa: E731
    out = os.path.join(folder, "old")
    os.mkdir(out)
    for options, first in (((), "w.c"), (("--binary",), "w.bin")):
        for name in (first, "w.h"):
            pathlib.Path(out, name).write_text("old " + name)
        said = tenon("export-c", path, "-o", out, "--name", "w", "--force", *options, code=3, preexec_fn=limit)
        assert said == f"tenon: {out}/{first}: cannot write: File too large (nothing was replaced)\n", said
        assert contents(os.path.join(out, first)) == b"old " + first.encode() and contents(os.path.join(out, "w.h")) == b"old w.h"
    assert sorted(os.listdir(out)) == ["w.bin", "w.c", "w.h"]
    new = os.path.join(folder, "new")
    tenon("export-c", path, "-o", new, code=3, preexec_fn=limit)
    assert not os.path.exists(new)
    said = tenon("export-c", path, "-o", os.path.join(folder, "in.safetensors"), code=3)
    assert "Not a directory" in said, said
    said = tenon("export-c", path, "-o", os.path.join(folder, "missing", "out"), code=3)
    assert "cannot make the folder: expected its parent folder to exist" in said, said


@test
def a_folder_that_may_not_be_written_is_an_error(folder):
    path, _ = make_model(folder, FIXED)
    out = os.path.join(folder, "closed")
    os.mkdir(out)
    os.chmod(out, 0o555)
    nobody = (lambda: os.setuid(65534)) if os.getuid() == 0 else None
    try:
        said = tenon("export-c", path, "-o", out, code=3, preexec_fn=nobody)
    except PermissionError:
        raise Skip("root keeps the build to itself")
    assert "Permission denied" in said and os.listdir(out) == [], said


@test
def a_full_disk_leaves_everything_as_it_was(folder):
    path, _ = make_model(folder, {"w": ([400000], [c / 128 for c in codes(400000, -127, 127, 13)], "i8,per=tensor,scale=0.0078125")})
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tenon-test", disk], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Skip(f"cannot mount a small disk: {done.stderr.strip()}")
    try:
        for options, first in (((), "w.c"), (("--binary",), "w.bin")):
            for name in (first, "w.h"):
                pathlib.Path(disk, name).write_text("old")
            said = tenon("export-c", path, "-o", disk, "--name", "w", "--force", *options, code=3)
            assert said == f"tenon: {disk}/{first}: cannot write: No space left on device (nothing was replaced)\n", said
            assert contents(os.path.join(disk, first)) == contents(os.path.join(disk, "w.h")) == b"old"
        assert sorted(os.listdir(disk)) == ["w.bin", "w.c", "w.h"]
        tenon("export-c", path, "-o", os.path.join(disk, "new"), code=3)
        assert not os.path.exists(os.path.join(disk, "new"))
    finally:
        subprocess.run(["umount", disk], check=True)


@test
def damage_is_noticed(folder):
    path, _ = make_model(folder, FIXED, options=["--checksum", "crc32c"])
    raw = bytearray(contents(path))
    at = raw.find(struct.pack("<hh", -32767, 32767))
    raw[at] ^= 1
    pathlib.Path(path).write_bytes(raw)
    said = tenon("export-c", path, "-o", os.path.join(folder, "out"), code=1)
    assert 'tensor "conv1.weight"' in said and "checksum" in said, said
    assert not os.path.exists(os.path.join(folder, "out"))


def peak_of(*arguments):
    """The largest resident set seen of a run that maps nothing of its input."""
    process = subprocess.Popen([TENON, *arguments, "--io", "pread"], stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as f:
                fields = dict(line.split(":", 1) for line in f)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields["Name"].strip() == os.path.basename(TENON)[:15]:      # before that it is a copy of ourselves
            most = max(most, int(fields.get("VmHWM", "0 kB").split()[0]) * 1024)
        time.sleep(0.002)
    assert process.returncode == 0 and most, f"{arguments}: exit {process.returncode}"
    return most


def make_large(folder, size):
    """A tensor of zeroes that take no room on disk: a small one whose description is changed."""
    seed, path = os.path.join(folder, "seed.safetensors"), os.path.join(folder, f"large{size}.json")
    write_floats(seed, {"w": ([4], [0.5, 0.25, 0.0, -0.5])})
    tenon("convert", "--quiet", seed, path, "--cast", "i8,per=tensor,scale=0.0078125", "--to", "raw", "--drop-names")
    document = json.loads(contents(path))
    document["shape"]["dimensions"] = [size]
    document["memory"]["total_bytes"] = size
    pathlib.Path(path).write_text(json.dumps(document))
    with open(os.path.join(folder, f"large{size}.bin"), "wb") as f:
        f.truncate(size)
    return path


@test
def memory_does_not_grow_with_a_tensor(folder):
    if is_sanitized():
        raise Skip("sanitizers take memory of their own")
    peaks = []
    for options, size in ((["--binary"], 96 * MIB), ([], 32 * MIB)):
        out = os.path.join(folder, "out")
        peaks.append(peak_of("export-c", "--quiet", make_large(folder, size), "-o", out, "--force", "--name", "large", *options))
        shutil.rmtree(out)
    assert max(peaks) < 24 * MIB, f"peaks {[f'{peak / MIB:.1f} MiB' for peak in peaks]}"
    return f"at most {max(peaks) / MIB:.1f} MiB"


if len(sys.argv) > 2:
    _tests[:] = [t for t in _tests if t.__name__ in sys.argv[2:]]
run_tests()
