"""Rules of a conversion compose: one conversion gives what its steps give one at a time.

Each case is a kind of source, some rules and a few tensors.  One conversion with all rules, by one thread
and by two, gives the bytes of the documented steps, each in a conversion of its own: values of codes, dense
form, layout, sparse form, cast or codes, padding (before codes of tiles and before a sparse form).  What a
small model in Python can compute is compared with that as well.  What is refused is in REFUSALS.
"""
import collections
import itertools
import json
import multiprocessing
import os
import random
import shutil
import subprocess
from array import array

from conversions import (ARRAYS, AS_OPTIONS, BLOCKS, CODES, DATATYPES, KINDS, LARGE, OUTPUTS, PLAIN, RULES,
                         SCALAR, SMALL, SPARSE, TILES, VIRTUAL, Bench, Case, Results, all_options, cast,
                         count, dequantize, describe, fast_folder, little, pad, quantize, read_safetensors,
                         reorder, sparse_parts, steps_of, tensors_of, values)
from system import MIB, TENON, contents, run_tests, test
from zt import read_zt


# ---- what is refused ----

def padded_shape(shape, pad):
    physical = list(shape)
    for rule in pad.split(","):
        dimension, multiple = map(int, rule.split("="))
        physical[dimension] += -physical[dimension] % multiple
    return physical


def new_order(case, rank):
    if case.layout:
        return [0, 2, 3, 1] if rank == 4 else [1, 0]
    return list(range(rank))


def has_padding(case, shape):
    """Whether the result has: not if the padding has become part of the tensor."""
    shape = [shape[i] for i in new_order(case, len(shape))]
    is_kept = case.form in SPARSE or case.cast in TILES
    stays = not case.cast and case.form != "dense"
    has_narrow_codes = case.cast == "int4,per=tensor" or (case.kind == "int4 per tensor" and stays)
    if case.pad and shape and not is_kept and padded_shape(shape, case.pad) != shape:
        return True
    return bool(has_narrow_codes and shape and count(shape) and shape[-1] % 2)


def last_extent(case, shape):
    shape = [shape[i] for i in new_order(case, len(shape))]
    return (padded_shape(shape, case.pad) if case.pad else shape)[-1]


def is_quantized(case):
    return case.cast is not None and case.cast not in PLAIN


Refusal = collections.namedtuple("Refusal", "text reason applies")
REFUSALS = [
    Refusal("its codes have no other form, layout, shape or padding: cast it to a float type as well",
            "codes of tiles lie as their datatype says",
            lambda c, s, o: (c.kind in DATATYPES and not c.cast and c.form != "dense" and
                             (c.layout or c.pad or c.form))),
    Refusal('expected a dense, coo or csr tensor but found form "scaled" (cast it to a float type first)',
            "codes have scales, which no sparse form has; from codes to fx8 there are no values in between",
            lambda c, s, o: (c.kind in CODES and c.form and
                             (c.cast == "fx8" or (not c.cast and c.form in SPARSE)))),
    Refusal("a sparse tensor has no scales, no order of its elements and no padding (--form dense)",
            "these are properties of a dense array",
            lambda c, s, o: (c.kind in SPARSE and c.form != "dense" and
                             (is_quantized(c) or c.layout or c.pad))),
    Refusal("a sparse tensor has no codes with scales", "as before",
            lambda c, s, o: c.kind not in SPARSE and c.form in SPARSE and is_quantized(c)),
    Refusal("entries of a sparse tensor take whole bytes when they are made but found int4",
            "entries are gathered one by one",
            lambda c, s, o: c.form in SPARSE and c.cast == "int4"),
    Refusal("int4 is narrower than a byte: cast it to a type of whole bytes first", "as before",
            lambda c, s, o: c.kind == "int4" and c.form in SPARSE),
    Refusal("form csr has two dimensions, or three: a batch; but found", "the form is of matrices",
            lambda c, s, o: c.form == "csr" and len(s) not in (2, 3)),
    Refusal("expected values of a", "integers are not quantized in silence",
            lambda c, s, o: c.kind == "int4" and is_quantized(c)),
    Refusal("expected a tiled dimension that is a multiple of the rotation's 32 values but found",
            "a rotation mixes as many values as it is large",
            lambda c, s, o: c.cast and "rotate" in c.cast and s and count(s) and last_extent(c, s) % 32 != 0),
    Refusal("its tiles need rank 1 or more but the tensor has rank 0", "a tile is a part of a dimension",
            lambda c, s, o: not s and (c.cast in TILES or c.cast == VIRTUAL)),
    Refusal("expected a dimension below 0 but found", "a scalar has no channels",
            lambda c, s, o: not s and c.cast and "channel" in c.cast),
    Refusal("expected one of its 0 dimensions to pad but found", "a scalar has no dimension to pad",
            lambda c, s, o: not s and c.pad),
    Refusal("a tensor with padding cannot be compressed", "padding is there to be mapped",
            lambda c, s, o: o == "zstd" and has_padding(c, s)),
]


def refusals_of(case, shape, output):
    return [refusal for refusal in REFUSALS if refusal.applies(case, shape, output)]


# ---- a model of some conversions ----

MODELLED = (None, "f32", "f16", "bf16", "i8", "int8,per=tensor", "int8,per=channel,axis=0")


def model_knows(case):
    is_int8 = case.kind in ("int8 per tensor", "int8 per channel")
    return case.cast in MODELLED and (case.kind in ARRAYS + SPARSE or bool(is_int8 and case.cast))


def model(case, name, shape):
    """The entries of the result by what follows the name: type, shape, bytes; None: not modelled."""
    if not model_knows(case):
        return None
    elements = values(shape, name)
    if case.kind in CODES:
        axis = 1 if case.kind == "int8 per channel" else None
        elements = dequantize(*quantize(elements, shape, axis), shape, axis)
    order = new_order(case, len(shape))
    elements, shape = reorder(elements, shape, order)
    form = case.form or (case.kind if case.kind in SPARSE else "dense")
    physical = padded_shape(shape, case.pad) if case.pad else shape
    if form != "dense":
        elements = array("f", pad(elements.tobytes(), shape, physical))
        return sparse_parts(elements, physical, form, case.cast)
    if not is_quantized(case):
        dtype, data = cast(elements, case.cast)
        return {"": (dtype, physical, pad(data, shape, physical))}
    axis = order.index(0) if "channel" in case.cast else None
    codes, scales = quantize(elements, shape, axis)
    return {"": ("I8", physical, pad(codes.tobytes(), shape, physical)),
            ".scale": ("F32", [] if axis is None else [len(scales)], little(scales))}


def check_model(case, chosen, path):
    """How many tensors of a safetensors file the model could check."""
    header, data = read_safetensors(path)
    header.pop("__metadata__", None)
    checked = 0
    for name, shape in chosen.items():
        expected = model(case, name, shape) if count(shape) <= MIB else None
        if expected is None:
            continue
        checked += 1
        if case.kind in ONE_ARRAY and name not in header:       # an .npy file has no names
            name = min(header, key=len)
        for suffix, (dtype, shape, elements) in expected.items():
            entry = header.get(name + suffix)
            assert entry, f"{name + suffix} is missing"
            begin, end = entry["data_offsets"]
            found = (entry["dtype"], entry["shape"])
            assert found == (dtype, shape), f"{name + suffix}: expected {dtype} {shape} but found {found}"
            if data[begin:end] != elements:
                at = next(i for i in range(end - begin) if data[begin + i] != elements[i])
                raise AssertionError(f"{name + suffix}: byte {at} of {end - begin} is not that of the model")
    return checked


ONE_ARRAY = ("big-endian", "Fortran order")


# ---- cases ----

def check_refused(bench, case, names, output, results):
    """Tensors that are to be refused are, for a reason that applies."""
    allowed = refusals_of(case, bench.shapes[names[0]], output)
    _, said = bench.at_once(case, names, output, 1)
    assert said, f"converted but was to be refused: {allowed[0].text}"
    reasons = [refusal for refusal in allowed if refusal.text in said]
    assert reasons, f"refused for another reason than expected: {said}"
    results["refused"] += 1


def entries_of(path):
    """What a file without compression holds, wherever it lies."""
    if path.endswith(".safetensors"):
        return contents(path)
    return {name: (fields | {"offset": 0}, data) for name, (fields, data) in read_zt(path).items()}


def check_steps(bench, case, names, output, made):
    """What is made at once is what the steps make; compressed data is unpacked first."""
    plain = output if output != "zstd" else "zt"
    path, said = bench.by_steps(case, names, plain)
    assert not said, f"a step of it is refused: {said}"
    if output == "zstd":
        packed, made = made, os.path.join(bench.folder, "unpacked.zt")
        said = bench.convert(packed, made, OUTPUTS["zt"][1])
        assert not said, f"it cannot be unpacked: {said}"
    if entries_of(made) != entries_of(path):
        diff = subprocess.run([TENON, "diff", path, made], stdout=subprocess.PIPE, text=True)
        raise AssertionError(f"it is not what its steps make: {diff.stdout}")


def check_equal(bench, case, names, output, results):
    """All rules at once give what the steps give, by one thread and by two."""
    (made, said), (by_two, said_two) = (bench.at_once(case, names, output, jobs) for jobs in (1, 2))
    assert not said and not said_two, f"refused: {said}"
    assert contents(made) == contents(by_two), "two threads make other bytes than one"
    if len(steps_of(case, bench.chosen(names))) > 1 or output == "zstd" or case.cast in AS_OPTIONS:
        check_steps(bench, case, names, output, made)
    results["equal"] += len(names)
    if output == "safetensors":
        results["modelled"] += check_model(case, bench.chosen(names), made)


def check_case(bench, case, output):
    """One set of rules on all tensors of a source.  Returns what was found, and what is wrong."""
    results, wrong, before = Results(cases=1), [], bench.runs
    groups = collections.defaultdict(list)
    for name, shape in bench.shapes.items():
        groups[tuple(refusal.text for refusal in refusals_of(case, shape, output))].append(name)
    for refusals, names in groups.items():
        check = check_refused if refusals else check_equal
        try:
            check(bench, case, tuple(names), output, results)
        except AssertionError as reason:
            options = describe(all_options(case, bench.chosen(names)))
            wrong.append(f"{case.kind}, {' '.join(names)}, {output}: {options}: {reason}")
    results["conversions"] += bench.runs - before
    return results, wrong


def check_source(task):
    """All cases of one source; run by a process of its own."""
    folder, kind, shapes, cases = task
    bench = Bench(folder, kind, shapes)
    total, wrong = Results(), []
    for case, output in cases:
        results, found = check_case(bench, case, output)
        total.update(results)
        wrong += found
    shutil.rmtree(bench.folder)
    return total, wrong


def check_all(folder, plan):
    """plan: (kind, shapes) -> cases with their outputs.  Fails with the first few that are wrong."""
    total, wrong = Results(), []
    with fast_folder(folder) as fast, multiprocessing.get_context("fork").Pool(2) as pool:
        tasks = [(fast, kind, shapes, cases) for kind, shapes, cases in plan if cases]
        for results, found in pool.imap_unordered(check_source, tasks):
            total.update(results)
            wrong += found
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:20])
    return f"{total['cases']} sets of rules, {total['conversions']} conversions: " \
           f"{total['equal']} tensors equal ({total['modelled']} modelled), {total['refused']} refusals"


def cases_of(kind, numbers, shapes=SMALL):
    """All sets of so many rules."""
    for number in numbers:
        for chosen in itertools.combinations(RULES, number):
            if "layout" in chosen and shapes == SCALAR:
                continue
            for rules in itertools.product(*(RULES[option] for option in chosen)):
                yield Case(kind, **{option: None for option in RULES} | dict(zip(chosen, rules)))


def shapes_of(kind, shapes):
    return {name: shape for name, shape in shapes.items() if kind != "csr" or len(shape) == 2}


def is_wanted(case, shapes, output):
    return not all(refusals_of(case, shape, output) for shape in shapes.values())


@test
def every_rule_and_every_pair_of_rules_on_every_kind_of_source(folder):
    """Each set is written in two ways, over all kinds in three; if all is refused, in one."""
    plan = []
    for number, kind in enumerate(KINDS):
        shapes, cases = shapes_of(kind, SMALL), collections.defaultdict(list)
        for i, case in enumerate(cases_of(kind, (0, 1, 2))):
            first, second, _ = itertools.islice(itertools.cycle(OUTPUTS), i + number, i + number + 3)
            cases[first].append((case, first))
            if is_wanted(case, shapes, second):
                cases[first].append((case, second))
        plan += [(kind, shapes, some) for some in cases.values()]
    return check_all(folder, plan)


def random_cases(kind, shapes, number, seed, least=3):
    """Sets of so many rules at least, of which not all are refused."""
    random_ = random.Random(f"{kind} {seed}")
    choices = RULES | {"pad": RULES["pad"] + ["0=16,-1=5"]}
    cases = []
    while len(cases) < number:
        rules = {option: random_.choice([None, *some, *some]) for option, some in choices.items()}
        case, output = Case(kind, **rules), random_.choice(list(OUTPUTS))
        if sum(map(bool, rules.values())) >= least and is_wanted(case, shapes, output):
            cases.append((case, output))
    return cases


def modelled_cases(kind, shapes, number):
    """Of those that the model knows, which reads safetensors files."""
    cases = [case for case in cases_of(kind, (1, 2, 3))
             if model_knows(case) and is_wanted(case, shapes, None)]
    return [(case, "safetensors") for case in random.Random(kind).sample(cases, number)]


def random_plan(shapes, number, seed, least=3):
    """Most rules have no meaning for a source that is sparse."""
    plan = []
    for kind in KINDS:
        chosen, most = shapes_of(kind, shapes), min(number, 2) if kind in SPARSE else number
        plan.append((kind, chosen, random_cases(kind, chosen, most, seed, least)))
    return plan


@test
def random_sets_of_three_rules_and_more(folder):
    return check_all(folder, random_plan(SMALL, 24, 1))


@test
def every_rule_and_the_pairs_of_rules_that_scalars_have(folder):
    plan = []
    for kind in ("safetensors", "deflate", "big-endian", "coo", "int4", "int8 per tensor"):
        cases = [*cases_of(kind, (0, 1), SCALAR)]
        cases += [case for case in cases_of(kind, (2,), SCALAR) if not refusals_of(case, [], None)]
        plan.append((kind, SCALAR, list(zip(cases, itertools.cycle(OUTPUTS)))))
    return check_all(folder, plan)


@test
def random_sets_of_rules_on_a_tensor_that_is_made_by_blocks(folder):
    tensors_of(LARGE)
    plan = random_plan(LARGE, 3, 2)
    for kind in (*ARRAYS, *SPARSE, "int8 per tensor", "int8 per channel"):
        plan.append((kind, LARGE, modelled_cases(kind, LARGE, 1)))
    return check_all(folder, plan)


def reordering_plan():
    plan = random_plan(BLOCKS, 40, 3, least=2)
    return [(kind, shapes, [(case, output) for case, output in cases if case.layout][:1])
            for kind, shapes, cases in plan]


@test
def random_sets_of_rules_on_tensors_that_are_reordered_by_blocks(folder):
    tensors_of(BLOCKS)
    return check_all(folder, reordering_plan())


def report(source, made, options):
    command = [TENON, "convert", "--quiet", "--force", "--report", "--json", source, made, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["report"]


@test
def the_report_of_new_codes_is_that_of_the_values_of_the_old_ones(folder):
    """Whatever other rules there are: scales and errors do not depend on the order of elements."""
    shapes, number = {"m.33x64": SMALL["m.33x64"]}, 0
    for kind in (*CODES, *DATATYPES):
        bench = Bench(folder, kind, shapes)
        decoded, said = bench.after([["--cast", "f32"]], tuple(shapes))
        assert not said, said
        for cast_, more in itertools.product(["int8,per=tensor", "int8,per=channel,axis=0", "mxfp4"],
                                             [[], ["--layout", "AB,from=AB"], ["--form", "dense"]]):
            found = report(bench.source, decoded + ".out.zt", ["--cast", cast_, *more])
            expected = report(decoded, decoded + ".out.zt", ["--cast", cast_])
            assert found == expected, f"{kind}: {cast_} {more}: expected {expected} but found {found}"
            number += 1
    return f"{number} reports"


run_tests()
