"""Damaged files: each is loaded and run, or ends in OnnxError; nothing else, and in bounded memory.

    python -m tests.onnx.mutated --count 10000 --seed 1
    python -m tests.onnx.mutated --count 10000 --seed 1 --vectors     the node vectors of onnx

Small models are changed bit by bit, cut, and field by field, and read in a child process whose
memory is limited.  The last line says how many loaded, how many ran, how many were refused, and
what else happened; the exit code is 1 where anything else did.
"""

import argparse
import collections
import json
import multiprocessing
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import Message

import tinygraph as tg
from tests.onnx.models import ALL, save
from tests.onnx.vectors import parts, vectors
from tinygraph.base.errors import OnnxError

MEMORY = 3 * 2**30
SECONDS = 20  # for one file; a generous limit, for the machine may be loaded
MOST = 2**16  # elements of an input that is made for a model


def flipped(rng, data):
    """Some bits are others."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(rng, data):
    return data[: rng.integers(len(data))]


def spliced(rng, data):
    """A part of the file once more, or gone."""
    start, end = sorted(rng.integers(0, len(data), 2))
    return data[:start] + data[end:] if rng.random() < 0.5 else data[:end] + data[start:]


ODD_NUMBERS = (0, 1, -1, 2, 7, 64, 255, 2**16, 2**31 - 1, 2**31, 2**40, 2**62, -(2**63), 2**63 - 1)
ODD_WORDS = ("", "x", "y", "/", "..", "../model.onnx", "a.b.c", "Loop", "Relu", "Reshape", "é", "0")


def messages(message, depth=0):
    """A message and all in it."""
    yield message
    if depth < 8:
        for field, value in message.ListFields():
            for inner in value if field.is_repeated else [value]:
                if isinstance(inner, Message):
                    yield from messages(inner, depth + 1)


def fields(rng, data):
    """Some fields have other values, are gone, or stand twice."""
    model = onnx.ModelProto.FromString(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        found = [m for m in messages(model) if m.ListFields()]
        message = found[rng.integers(len(found))]
        known = message.ListFields()
        change(rng, message, *known[rng.integers(len(known))])
    return model.SerializeToString()


def change(rng, message, field, value):
    try:
        if rng.random() < 0.15:
            message.ClearField(field.name)
        elif field.is_repeated:
            change_list(rng, value)
        elif not isinstance(value, Message):
            setattr(message, field.name, another(rng, value))
    except (ValueError, TypeError):  # an enumeration has not every number
        message.ClearField(field.name)


def change_list(rng, values):
    i, kind = int(rng.integers(len(values))), rng.integers(4)
    if kind == 0:
        del values[i]
    elif isinstance(values[i], Message):
        if kind == 1:
            values.add().CopyFrom(values[i])
        else:
            values[i].CopyFrom(values[int(rng.integers(len(values)))])
    elif kind == 1:
        values.append(values[i])
    else:
        values[i] = another(rng, values[i])


def another(rng, value):
    if isinstance(value, bytes):
        return flipped(rng, value) if value and rng.random() < 0.5 else value[: len(value) // 2]
    if isinstance(value, str):
        return ODD_WORDS[rng.integers(len(ODD_WORDS))]
    if isinstance(value, float):
        return float(rng.choice([0.0, -1.0, 1e38, np.inf, np.nan]))
    return int(ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))])


MUTATIONS = (flipped, cut, spliced, fields, fields, fields)


def feeds(module, proto):
    """Inputs of the shapes that a model says, each free size 2."""
    for info in proto.graph.input:
        if info.name in module.input_names:
            kind = info.type.tensor_type
            shape = [d.dim_value if d.HasField("dim_value") else 2 for d in kind.shape.dim]
            most = np.prod([float(max(n, 1)) for n in shape])
            if len(shape) > 64 or any(n < 0 for n in shape) or most > MOST:
                return None
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            yield np.ones(shape, dtype)


def outcome(path, data):
    """What happens to one file, and where it is bad, the traceback."""
    try:
        module = tg.onnx.load(path)
    except OnnxError:
        return "refused", ""
    except BaseException:
        return "bad load", traceback.format_exc(limit=-4)
    try:
        inputs = list(feeds(module, onnx.ModelProto.FromString(data)))
        module(*inputs)
    except OnnxError:
        return "loaded", ""
    except BaseException:
        return "bad run", traceback.format_exc(limit=-4)
    return "ran", ""


def too_slow(*_):
    raise TimeoutError(f"{SECONDS} seconds")


def read_many(sources, seed, count, folder, out):
    """In a child: mutate and read files, one line of JSON for each that is bad, counts last."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, too_slow)
    rng, counts = np.random.default_rng(seed), collections.Counter()
    with open(out, "w", encoding="utf-8") as lines:
        for i in range(count):
            name, data = sources[i % len(sources)]
            mutate = MUTATIONS[rng.integers(len(MUTATIONS))]
            changed = mutate(rng, data)
            path = folder / name / "mutated.onnx"
            path.write_bytes(changed)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            verdict, why = outcome(path, changed)
            signal.setitimer(signal.ITIMER_REAL, 0)
            counts[verdict] += 1
            if why:
                bad = {"file": i, "model": name, "mutation": mutate.__name__, "why": why}
                print(json.dumps(bad), file=lines)
        print(json.dumps(counts), file=lines)


def all_vectors():
    """The models of the node vectors, by name."""
    return {name: parts(case)[0] for name, case in vectors("node").items()}


def try_files(count, seed, more=None):
    """Counts of what happened to damaged files, and what was bad, a dict for each."""
    with tempfile.TemporaryDirectory() as name:
        folder, sources = Path(name), []
        for stem, make in ALL.items():
            for outside in (False, True):
                place = folder / f"{stem}{'-outside' * outside}"
                place.mkdir()
                path = save(make(), place / "model.onnx", outside=outside)
                sources.append((place.name, path.read_bytes()))
        for stem, made in (more or {}).items():
            (folder / stem).mkdir()
            sources.append((stem, made.SerializeToString()))
        out = folder / "out"
        context = multiprocessing.get_context("spawn")
        child = context.Process(target=read_many, args=(sources, seed, count, folder, out))
        child.start()
        child.join()
        lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        if child.exitcode or not lines or "why" in lines[-1]:
            return {"died": 1}, [*lines, {"why": f"the child ended with {child.exitcode}"}]
        return lines[-1], lines[:-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vectors", action="store_true", help="the node vectors of onnx as well")
    args = parser.parse_args()
    more = all_vectors() if args.vectors else None
    counts, bad = try_files(args.count, args.seed, more)
    for each in bad:
        print(each.get("file"), each.get("model"), each.get("mutation"), each["why"], sep="\n")
    print(", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items())))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
