"""Slices, other orders and shapes, what is joined and cut: with each other and with every other rule, one
conversion gives what its steps give one at a time (conversions.py).  What a small model can compute is compared
with that as well, and what docs/pipeline.md refuses is refused for its reason.
"""
import collections
import functools
import itertools
import multiprocessing
import os
import random
import shutil
from array import array

from conversions import (ARRAYS, CODES, DATATYPES, FLOATS, KINDS, OUTPUTS, PLAIN, SPARSE, VIRTUAL, Bench,
                         Results, cast, count, describe, fast_folder, read_safetensors, reorder, values)
from system import contents, run_tests, test

PAIR = {"m.2": [16, 20], "m.10": [16, 20]}             # joined in the order of their numbers
JOINS = {"concat": ["--concat", "j=m.*"], "stack": ["--concat", "j=m.*,stack=1"],
         "split": ["--split", "m.*=left.*+right.*"], "unstack": ["--split", "m.*=u.*.*,unstack=0"]}
LAYOUTS = {1: "A,from=A", 2: "BA,from=AB", 3: "CAB,from=ABC"}
NEW_STEPS = ("slice", "transpose", "reshape", "join")
Shaped = collections.namedtuple("Shaped", "kind slice transpose reshape join layout cast pad form")
SHAPED = {"slice": ["m.*=:8:2,4:12", "m.*=2:10,::5"], "transpose": ["m.*=1,0"],
          "reshape": ["m.*=2,-1", "m.*=-1"], "join": list(JOINS), "layout": ["reversed"],
          "cast": ["f16", "f16,times=0.3", "int4", "int8,per=tensor", "int8,per=channel,axis=0", "mxfp4",
                   "float32|n2m4", "mxfp4,rotate=hadamard4", VIRTUAL], "pad": ["-1=7"],
          "form": ["dense", "coo", "csr"]}
SHAPED_TILES = ("mxfp4", "float32|n2m4", "mxfp4,rotate=hadamard4")


def shape_after(case):
    """Of each tensor that comes out, before its layout changes and it is padded."""
    return next(iter(shaped_model(case._replace(cast=None)).values()))[1]


def shaped_refusals(case):
    """What the message says of each reason for which docs/pipeline.md refuses it."""
    shape = shape_after(case)
    order, letters = LAYOUTS[len(shape)].split(",from=")
    last = shape[letters.index(order[-1]) if case.layout else -1]
    last += -last % 7 if case.pad else 0
    codes, makes_sparse = case.cast is not None and case.cast not in PLAIN, case.form in SPARSE
    stays_scaled = case.kind in CODES and not case.cast
    reasons = {
        "its codes have no other form, layout, shape or padding: cast it to a float type as well":
            case.kind in DATATYPES and not case.cast,
        "sparse": case.kind in SPARSE and case.form != "dense",
        'expected a dense, coo or csr tensor but found form "scaled"': stays_scaled and case.form,
        "codes of other scales cannot be joined: their values can (--cast f32)":
            stays_scaled and case.join in ("concat", "stack"),
        "its scales belong to one dimension, which a new shape would not have (--cast f32)":
            stays_scaled and case.reshape and "tensor" not in case.kind,
        "a sparse tensor has no codes with scales": makes_sparse and codes,
        "entries of a sparse tensor take whole bytes when they are made but found int4":
            makes_sparse and case.cast == "int4",
        "expected values of a float type but found int4: cast it to f32 first": case.kind == "int4" and codes,
        "int4 is narrower than a byte: cast it to a type of whole bytes first": case.kind == "int4" and makes_sparse,
        "form csr has two dimensions, or three: a batch; but found": case.form == "csr" and len(shape) not in (2, 3),
        "expected a tiled dimension that is a multiple of the rotation's 4 values but found":
            case.cast and "rotate" in case.cast and last % 4,
    }
    return [text for text, applies in reasons.items() if applies]


def is_sensible(case):
    """Unstacked vectors are scalars, which have no axes; 20 rows are cut in two, 5 are not."""
    if case.join in ("split", "unstack"):
        rows = shape_after(case._replace(join=None))
        if case.join == "split" and rows[0] % 2 or case.join == "unstack" and len(rows) == 1:
            return False
    return True


def shaped_layout(case):
    return LAYOUTS[len(shape_after(case))]


def shaped_cast(case, cast_):
    """The axis of the cast, where the layout has put it."""
    if "axis=0" not in cast_ or not case.layout:
        return ["--cast", cast_]
    order, letters = shaped_layout(case).split(",from=")
    return ["--cast", cast_.replace("axis=0", f"axis={order.index(letters[0])}")]


def shape_steps(case):
    """The options of each step, in the documented order; "keep": padding becomes part of the tensor."""
    first, cast_, padding = [], case.cast, [["--pad", case.pad]] if case.pad else []
    if cast_ and case.kind in (*CODES, *DATATYPES):
        direct = cast_ in FLOATS and case.join not in ("concat", "stack")
        first, cast_ = [["--cast", cast_ if direct else "f32"]], None if direct else cast_
    first += [["--form", "dense"]] if case.form == "dense" else []
    first += [[f"--{step}", getattr(case, step)] for step in NEW_STEPS[:3] if getattr(case, step)]
    first += [JOINS[case.join]] if case.join else []
    first += [["--layout", shaped_layout(case)]] if case.layout else []
    if padding and (case.form in SPARSE or cast_ in SHAPED_TILES):
        first += padding + ["keep"]
        padding = []
    first += [["--form", case.form]] if case.form in SPARSE else []
    return first + ([shaped_cast(case, cast_)] if cast_ else []) + padding


def shape_options(case):
    """All of them at once, in another order."""
    options = [["--cast", case.cast]] if case.cast else []
    options += [["--layout", shaped_layout(case)]] if case.layout else []
    options += [[f"--{step}", getattr(case, step)] for step in ("pad", "form", "reshape", "transpose", "slice")
                if getattr(case, step)]
    return [word for option in options + ([JOINS[case.join]] if case.join else []) for word in option]


@functools.cache
def _shaped_model(slice_, transpose, reshape, join):
    """The tensors that come out, as elements and shape."""
    made = {}
    for name in sorted(PAIR, key=lambda name: int(name[2:])):
        elements, shape = values(PAIR[name], name), PAIR[name]
        if slice_:
            rows, columns = [slice(*(int(n) if n else None for n in text.split(":")))
                             for text in slice_[4:].split(",")]
            kept = [elements[i:i + shape[1]][columns] for i in range(0, len(elements), shape[1])][rows]
            elements, shape = array("f", itertools.chain(*kept)), [len(kept), len(kept[0])]
        if transpose:
            elements, shape = reorder(elements, shape, [1, 0])
        if reshape:
            shape = [len(elements)] if reshape == "m.*=-1" else [2, len(elements) // 2]
        made[name] = elements, shape
    (a, shape), (b, _) = made["m.2"], made["m.10"]
    inner = count(shape[1:])
    if join == "concat":
        made = {"j": (a + b, [2 * shape[0], *shape[1:]])}
    elif join == "stack":
        rows = [elements[i:i + inner] for i in range(0, len(a), inner) for elements in (a, b)]
        made = {"j": (array("f", itertools.chain(*rows)), [shape[0], 2, *shape[1:]])}
    elif join == "split":
        half = len(a) // 2
        made = {f"{side}.{name[2:]}": (elements[from_:from_ + half], [shape[0] // 2, *shape[1:]])
                for name, (elements, shape) in made.items() for side, from_ in (("left", 0), ("right", half))}
    elif join == "unstack":
        made = {f"u.{name[2:]}.{i}": (elements[i * inner:(i + 1) * inner], shape[1:])
                for name, (elements, shape) in made.items() for i in range(shape[0])}
    return made


def shaped_model(case):
    """The tensors that come out, as type, shape and bytes."""
    made = _shaped_model(case.slice, case.transpose, case.reshape, case.join)
    return {name: (dtype, shape, data) for name, (elements, shape) in made.items()
            for dtype, data in [cast(elements, case.cast)]}


def check_shaped_model(case, path):
    """Whether the model knows the case, and finds it in a safetensors file."""
    if case.kind not in ARRAYS or case.cast not in (None, "f16") or case.pad or case.layout or case.form in SPARSE:
        return False
    header, data = read_safetensors(path)
    header.pop("__metadata__", None)
    found = {name: (entry["dtype"], entry["shape"], bytes(data[slice(*entry["data_offsets"])]))
             for name, entry in header.items()}
    assert found == shaped_model(case), "not what the model has"
    return True


def check_shaped_case(bench, case, jobs, results):
    """All at once gives what the last of the steps makes of what those before it have made; or why it is refused."""
    plain, refusals = OUTPUTS["safetensors"][1], shaped_refusals(case)
    whole, last = (os.path.join(bench.folder, name + ".safetensors") for name in ("whole", "last"))
    said = bench.convert(bench.source, whole, [*plain, *shape_options(case)], jobs)
    results["cases"] += 1
    if refusals or said:
        assert said and any(text in said for text in refusals), f"expected one of {refusals} but found {said}"
        results["refused"] += 1
        return
    *before, step = shape_steps(case)
    path, why = bench.after(before, tuple(PAIR))
    why = why or bench.convert(path, last, [*plain, *step])
    assert not why, f"a step of it is refused: {why}"
    assert contents(whole) == contents(last), "differs from its steps"
    results["modelled"] += check_shaped_model(case, whole)


def check_shaped(task):
    folder, kind, cases = task
    bench, results, wrong = Bench(folder, kind, PAIR), Results(), []
    for i, case in enumerate(cases):
        try:
            check_shaped_case(bench, case, 1 + i % 2, results)
        except AssertionError as reason:
            wrong.append(f"{kind}: {describe(shape_options(case))}: {reason}")
    results["conversions"] += bench.runs
    shutil.rmtree(bench.folder)
    return results, wrong


def shaped_cases(kind, number):
    """All sets of so many rules of which one is new, but for those that make no sense."""
    for chosen in itertools.combinations(SHAPED, number):
        for rules in itertools.product(*(SHAPED[step] for step in chosen)):
            case = Shaped(kind, **dict.fromkeys(SHAPED) | dict(zip(chosen, rules)))
            if any(step in NEW_STEPS for step in chosen) and is_sensible(case):
                yield case


def check_all_shaped(folder, tasks):
    total, wrong = Results(), []
    with fast_folder(folder) as fast, multiprocessing.get_context("fork").Pool(2) as pool:
        for results, found in pool.imap_unordered(check_shaped, [(fast, *task) for task in tasks]):
            total.update(results)
            wrong += found
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:20])
    return f"{total['cases']} sets of rules, {total['conversions']} conversions: {total['modelled']} modelled, " \
           f"{total['refused']} refused"


@test
def every_slice_order_shape_and_join_alone_and_with_every_other_rule(folder):
    return check_all_shaped(folder, [(kind, [*shaped_cases(kind, 1), *shaped_cases(kind, 2)]) for kind in KINDS])


@test
def random_sets_of_three_rules_and_more_with_a_new_one(folder):
    """Of those that are refused there are few: the pairs have them all."""
    tasks = []
    for kind in KINDS:
        random_ = random.Random("shaped " + kind)
        cases = [case for number in (3, 4) for case in random_.sample([*shaped_cases(kind, number)], 120)]
        tasks.append((kind, [case for case in cases if not shaped_refusals(case)][:40]))
    return check_all_shaped(folder, tasks)


run_tests()
