"""The test vectors of the package onnx: each is passed, refused, unmapped or wrong.

    python -m tests.onnx.vectors                 counts, and the names of those that are wrong
    python -m tests.onnx.vectors --only lstm     those whose names have a word in them, and why
    python -m tests.onnx.vectors --write         the ledger and docs/onnx_vectors.md

A vector is a model, inputs, and the outputs that the standard expects.  It is *passed* where all
outputs have the dtype and the shape, and the values to its tolerance, for other dtypes than floats
exactly; *refused* where reading or running it ends in OnnxError, *unmapped* where that says that
no importer knows the operator; and *wrong* in every other case, other errors among them.
"""

import argparse
import collections
import functools
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import tinygraph as tg
from tinygraph.base.errors import OnnxError
from tinygraph.interop.onnx.nodes import UnmappedError

LEDGER = Path(__file__).parent / "vectors.json"
PAGE = Path(__file__).parents[2] / "docs" / "onnx_vectors.md"
KINDS = ("node", "pytorch-converted", "pytorch-operator", "simple")
CLASSES = ("passed", "refused", "unmapped", "wrong")


@functools.cache
def vectors(kind):
    """The vectors of a kind by name, without those whose functions the package has expanded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind=kind)
    return {c.name: c for c in sorted(cases, key=lambda c: c.name) if "_expanded" not in c.name}


def parts(case):
    """The model of a vector, and pairs of inputs and expected outputs."""
    if case.model is not None:
        return case.model, [tuple([_arrays(part) for part in pair]) for pair in case.data_sets]
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = []
    for inner in sorted(folder.glob("test_data_set_*")):
        inputs = [_stored(inner / f"input_{i}.pb", v) for i, v in enumerate(model.graph.input)]
        outputs = [_stored(inner / f"output_{i}.pb", v) for i, v in enumerate(model.graph.output)]
        sets.append((inputs[: len(list(inner.glob("input_*.pb")))], outputs))
    return model, sets


def _arrays(values):
    return [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in values]


def _stored(path, info):
    """An array of a file; None for what no array can hold, as sequences."""
    if not path.exists() or info.type.WhichOneof("value") != "tensor_type":
        return None
    tensor = onnx.TensorProto.FromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def kinds_of(model):
    """The operators of a model, as "Add" or "domain.Operator"."""
    return sorted({f"{n.domain}.{n.op_type}".lstrip(".") for n in model.graph.node})


def run(case, folder):
    """The class of a vector, and why."""
    model, sets = parts(case)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    try:
        module = tg.onnx.load(path)
        with tg.no_grad():
            for inputs, expected in sets:
                difference = compare(module, inputs, expected, case.rtol, case.atol)
                if difference:
                    return "wrong", difference
    except UnmappedError as error:
        return "unmapped", str(error)
    except OnnxError as error:
        return "refused", str(error)
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"
    return "passed", ""


def compare(module, inputs, expected, rtol, atol):
    """What is wrong with the outputs; "" where nothing is."""
    outputs = module(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs for {len(expected)}"
    for i, (y, wanted) in enumerate(zip(outputs, expected, strict=True)):
        got, wanted = np.asarray(y.numpy() if isinstance(y, tg.Tensor) else y), np.asarray(wanted)
        if got.dtype != wanted.dtype or got.shape != wanted.shape:
            kinds = f"{got.dtype}{got.shape} for {wanted.dtype}{wanted.shape}"
            return f"output {i}: {kinds}"
        if got.dtype.kind in "fV":
            near = max(rtol, 2**-6) if got.dtype.name == "bfloat16" else rtol  # as onnx's runner
            got, wanted = got.astype(np.float64), wanted.astype(np.float64)
            if not np.allclose(got, wanted, near, atol, equal_nan=True):
                worst = np.nanmax(np.abs(got - wanted))
                return f"output {i}: values that differ by up to {worst}"
        elif not np.array_equal(got, wanted):
            return f"output {i}: other values"
    return ""


def sort_all(kinds=KINDS, only=""):
    """By kind and name: class, reason and operators."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in kinds:
            for name, case in vectors(kind).items():
                if only in name:
                    verdict = run(case, Path(folder))
                    found[kind, name] = *verdict, kinds_of(parts(case)[0])
    return found


def ledger_of(found):
    """Names by kind and class, as they stand in the file."""
    kinds = {}
    for (kind, name), (verdict, _, _) in found.items():
        kinds.setdefault(kind, {c: [] for c in CLASSES})[verdict].append(name)
    return {"onnx": onnx.__version__, "vectors": kinds}


def read_ledger():
    return json.loads(LEDGER.read_text(encoding="utf-8"))


def page(found):
    """docs/onnx_vectors.md: counts by kind, and the node vectors by operator."""
    text = (
        "# The test vectors of ONNX\n\n"
        f"The package onnx {onnx.__version__} has test vectors: models with inputs and the outputs "
        "that the standard\nexpects. `python -m tests.onnx.vectors --write` runs all of them "
        "through `tg.onnx.load` and writes this page;\nthe second tier of tests compares. Passed: "
        "all outputs have the dtype, the shape and, to the vector's\ntolerance, the values. "
        "Refused: an `OnnxError` names what is not read. Unmapped: it says that the\noperator is "
        "not known.\n\n"
    )
    text += "| vectors | passed | refused | unmapped | wrong |\n|---|---:|---:|---:|---:|\n"
    for kind in KINDS:
        counts = collections.Counter(v[0] for key, v in found.items() if key[0] == kind)
        text += f"| {kind} | " + " | ".join(str(counts[c]) for c in CLASSES) + " |\n"
    text += "\n## Node vectors by operator\n\n| operator | passed | refused | unmapped | wrong |\n"
    text += "|---|---:|---:|---:|---:|\n"
    rows = collections.defaultdict(collections.Counter)
    for (kind, _), (verdict, _, operators) in found.items():
        if kind == "node":
            rows[_main(operators)][verdict] += 1
    for operator in sorted(rows, key=str.lower):
        counts = [str(rows[operator][c] or "") for c in CLASSES]
        text += f"| {operator} | " + " | ".join(counts) + " |\n"
    return text


def _main(operators):
    """The operator that a vector is about: its only one, or all of them."""
    return ", ".join(operators) or "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="vectors whose names have this in them")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--show", choices=CLASSES, action="append", default=["wrong"])
    parser.add_argument("--write", action="store_true", help="write the ledger and the page")
    args = parser.parse_args()
    found = sort_all(args.kind or KINDS, args.only)
    for (kind, name), (verdict, why, _) in found.items():
        if args.only or verdict in args.show:
            print(f"{verdict:9}{kind} {name}  {why}")
    for kind in args.kind or KINDS:
        counts = collections.Counter(v[0] for key, v in found.items() if key[0] == kind)
        print(f"{kind}:", ", ".join(f"{counts[c]} {c}" for c in CLASSES))
    if args.write:
        LEDGER.write_text(json.dumps(ledger_of(found), indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
