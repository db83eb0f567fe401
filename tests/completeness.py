"""What an op lacks: mathematics, kernel, export, docstring, test file, reference, edges, bad input.

Adding an op means one file in a wing of ops/, its .cu beside it, one test file, and one export line
(docs/add_an_op.md).  A composite, a file without an `Op` whose functions apply other ops, needs no
kernel.
"""

import ast
import importlib
import inspect
import itertools
import pathlib
import re

import tinygraph as tg
from tests.cases.schema import EDGES, FOLDER, load
from tests.cuda.contract_work import contracts
from tinygraph import ops
from tinygraph.base.errors import TinygraphError, explain
from tinygraph.base.frozen import complete
from tinygraph.cuda.reading.operation_counts import statements
from tinygraph.cuda.reading.signature import kernels
from tinygraph.cuda.reading.source import Source

OPS = pathlib.Path(ops.__file__).parent
ROOT = pathlib.Path(__file__).parents[1]

# Op files that still wait for their kernel: none, and so it must stay.
WITHOUT_KERNEL: set[str] = set()

# Op files that need none: their output is a view of the input, or a copy between devices.
MOVES_NOTHING = {"reshape", "to"}

# Op files whose ops launch the kernels of another op.
LAUNCHES_ANOTHERS = {"conv_transpose2d"}

NO_FILE = WITHOUT_KERNEL | MOVES_NOTHING | LAUNCHES_ANOTHERS

# Op files without a public function: methods of Tensor apply their ops.
METHODS = {"to"}

# Files in the wings that are no ops: what several ops of a wing share.  None lies in ops/common
# beside those named, and ops/leaves makes leaves.
SHARED = {
    *("__init__", "unary", "losses", "weighted", "normalization", "drops", "gemm", "recurrent"),
    *("reductions", "lengths", "convolution", "convolution_blocks", "convolution_rows"),
    *("pooling_phases", "sequences", "single_channel_stage", "sliding", "windows"),
}
IN_COMMON = {"cast", "to"}

PAGES = {
    path.stem: path
    for path in sorted(OPS.glob("*/*.py"))
    if path.stem not in SHARED
    and path.parent.name != "leaves"
    and (path.parent.name != "common" or path.stem in IN_COMMON)
}
STEMS = sorted(PAGES)
SECTIONS = ("Parameters", "Returns", "Raises", "Examples")


def missing(stem):
    """All that an op lacks, one sentence each: where, what is expected, what is there, way out."""
    try:
        module = importlib.import_module(f"tinygraph.ops.{PAGES[stem].parent.name}.{stem}")
        parts = (op_file, kernels_of, exports, tests_of)
        sentences = itertools.chain.from_iterable(part(stem, module) for part in parts)
        return [explain(stem, *sentence) for sentence in sentences]
    except (TinygraphError, SyntaxError, ImportError, AttributeError) as error:
        place = f"{page(stem)}, or a file that it leads to"
        return [explain(stem, place, "what can be read", f"{type(error).__name__}: {error}")]


def page(stem):
    """The path of an op's file in the checkout."""
    return f"tinygraph/ops/{PAGES[stem].parent.name}/{stem}.py"


def op_classes(module):
    classes = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, tg.Op)]
    return [cls for cls in classes if cls.__module__ == module.__name__]


def public_functions(module):
    """The functions of an op file, by their names: those without an underscore in front."""
    found = {n: f for n, f in vars(module).items() if inspect.isfunction(f) and n[0] != "_"}
    return {n: f for n, f in found.items() if f.__module__ == module.__name__}


def exported(module):
    """Those that `ops/exports.py` exports."""
    functions = public_functions(module).items()
    return {n: f for n, f in functions if inspect.unwrap(getattr(ops, n, len)) is f}


def wanted(stem, module):
    """Those that it exports, or all where it exports none yet."""
    return {} if stem in METHODS else exported(module) or public_functions(module)


# ---- the places, one after the other: (path, expected, got, way out) ---------------------------


def op_file(stem, module):
    """Mathematics, immutable ops, no assert, no question for the device."""
    path = page(stem)
    if not re.search(r"^    \S.*[=<]", module.__doc__ or "", re.MULTILINE):
        way_out = "open the docstring of the file with lines such as `    y = x / (1 + abs(x))`"
        yield path, "the formula, indented by four", "no formula", way_out
    for cls in op_classes(module):
        complete(cls)
        params = getattr(cls, "__dataclass_params__", None)
        if params is None or not params.frozen or not params.eq:
            what = "an immutable class, for equal settings must make equal ops"
            yield f"{path}, class {cls.__name__}", what, "none", "put @frozen above it"
    tree = ast.parse(pathlib.Path(module.__file__).read_text())
    if any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        way_out = 'raise ArgumentError("op", "x", ...)'
        yield path, "errors of tinygraph.errors", "assert", way_out
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if "device" in attributes and stem != "to":  # which is about nothing else
        way_out = "put what kernels do into forward_kernel and backward_kernel"
        yield path, "bodies that do not ask for the device", ".device", way_out


def kernels_of(stem, module):
    """A .cu of the same name where ops launch it, with its operations stated."""
    source = PAGES[stem].with_suffix(".cu")
    path = page(stem).replace(".py", ".cu")
    is_due = bool(op_classes(module)) and stem not in NO_FILE
    if source.exists() is not is_due:
        if is_due:
            yield path, "the kernels of the op", "no file", "see docs/kernels/reading_a_kernel.md"
        else:
            yield path, "no file, for no op here launches it", "one", "take it off the waiting list"
    if source.exists():
        text = Source.read(source)
        stated = {statement.kernel for statement in statements(text)}
        for name in sorted({kernel.name for kernel in kernels(text)} ^ stated):
            way_out = f"// operations of {name}: 2 * n"
            yield path, "one statement of the operations of each kernel", f"for {name} not", way_out
    for cls in op_classes(module):
        for method in ("forward", "backward"):
            in_numpy = getattr(cls, method) is not getattr(tg.Op, method)
            by_kernel = getattr(cls, f"{method}_kernel") is not getattr(tg.Op, f"{method}_kernel")
            if by_kernel is not (in_numpy and stem not in WITHOUT_KERNEL):
                place = f"{page(stem)}, class {cls.__name__}"
                got = f"{method} in numpy: {in_numpy}, by a kernel: {by_kernel}"
                yield place, f"{method} and {method}_kernel", got, f"def {method}_kernel(self, ...)"


def exports(stem, module):
    """A line for at least one function, and a full docstring of each."""
    if not exported(module) and stem not in METHODS:
        name = next(iter(public_functions(module)), stem)
        line = f"from {module.__name__} import {name} as {name}"
        yield "tinygraph/ops/exports.py", "the export line", "none", line
    for name, function in wanted(stem, module).items():
        place = f"{page(stem)}, docstring of {name}"
        text = inspect.getdoc(function) or ""
        without = [title for title in SECTIONS if f"{title}\n{'-' * len(title)}" not in text]
        if without or ">>> " not in text or "Tensor" not in text:
            got = f"without {', '.join(without)}" if without else "no example, or no Tensor"
            yield place, f"the sections {', '.join(SECTIONS)}", got, "see the docstring of tg.relu"
        described = set(re.findall(r"[*\w]+", text.partition("Parameters")[2]))
        for argument in inspect.signature(function).parameters.keys() - described:
            yield place, f"the argument {argument}", "not described", "a line under Parameters"


def tests_of(stem, module):
    """An OpContract for each function, with an oracle of its own, problems, edges, bad input."""
    path = f"tests/ops/test_{stem}.py"
    tested = {}
    for contract in contracts(stem):
        tested.setdefault(contract.function.__name__, []).append(contract)
    for name in sorted(wanted(stem, module).keys() - tested.keys()):
        got = "no such class" if (ROOT / path).exists() else "no file"
        way_out = f"class Test{name.title().replace('_', '')}(OpContract), see docs/add_an_op.md"
        yield (
            path,
            f"a subclass of OpContract with function = staticmethod(tg.{name})",
            got,
            way_out,
        )
    for contract in itertools.chain.from_iterable(tested.values()):
        place = f"{path}, class {type(contract).__name__}"
        for attribute, way_out in {
            "reference": "reference = staticmethod(a naive loop over Python numbers)",
            "problems": "problems = elementwise_problems(), or another of tests/strategies.py",
            "bad_input": 'bad_input = [Bad("integers", ([1, 2],), {}, DtypeError, "float32")]',
        }.items():
            if getattr(contract, attribute, None) in (None, []):
                yield place, f"the attribute {attribute}", "none", way_out
        asked = asks_tinygraph(getattr(contract, "reference", None))
        if asked:
            yield place, "a reference that does not call what it checks", asked, "write it in loops"
        if not contract.has_kernel() and stem not in WITHOUT_KERNEL:
            yield place, "kernels that the contract can run", "an op of the file has none"
        if contract.function.__name__ in exported(module) and not has_edges(contract, tested):
            way_out = (
                'conventions = [Convention("at 0", ([0.0],), value=[0.0], gradients=([1.0],))]'
            )
            yield place, "what is agreed at an edge: 0, inf, NaN, ties", "none", way_out


def has_edges(contract, tested):
    """Whether a contract of the function, or a case file, says what holds at the edges."""
    name = contract.function.__name__
    path = FOLDER / f"{name}.json"
    if path.exists() and any(case.kind in EDGES for case in load(path)):
        return True
    return any(one.conventions for one in tested[name])


def asks_tinygraph(reference):
    """The name by which a reference reaches tinygraph, itself or by what it calls; or None."""
    queue, seen = [reference], set()
    while queue:
        function = queue.pop()
        code = getattr(function, "__code__", None)
        if code is None or function in seen:
            continue
        seen.add(function)
        inner = [c for c in code.co_consts if inspect.iscode(c)]  # of functions within
        for name in itertools.chain(*[c.co_names for c in (code, *inner)]):
            value = function.__globals__.get(name)
            owner = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", "")
            if (owner or "").split(".")[0] == "tinygraph":
                return name
            queue.append(value)
    return None
