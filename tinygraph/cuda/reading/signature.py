"""The signature of a `__global__` function, read from the source: what a launch is checked against.

    parse(source, "scale<float>").parameters
    (const float* x, float* y, float alpha, int n)

Read are declarations as they stand in real kernels: templates, typedefs, macros, attributes, in the
file or in its local include files.  What cannot be read is declared with `parameters=`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tinygraph.base import KernelCompileError, nearest
from tinygraph.cuda.reading.declarations import Declaration, declarations
from tinygraph.cuda.reading.preprocessor import evaluate
from tinygraph.cuda.reading.source import Source
from tinygraph.cuda.reading.tokens import code, joined, split
from tinygraph.cuda.reading.types import DECLARE, KernelParameter, TypeReader

__all__ = ["KernelName", "KernelParameter", "Signature", "kernels", "parse", "split_name"]


@dataclass(frozen=True)
class Signature:
    """What a launch needs to know of a kernel."""

    name: str  # with its template arguments, as asked for: "unary_forward<float, Relu>"
    function: str  # without template arguments
    template_args: tuple[str, ...]  # as given in the name
    parameters: tuple[KernelParameter, ...]
    launch_bounds: int | None = None  # the most threads of a block by `__launch_bounds__`

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"


class KernelName(NamedTuple):
    """A `__global__` function of a file, and the names of its template parameters."""

    name: str
    template: tuple[str, ...] = ()


def kernels(source: Source) -> list[KernelName]:
    """The kernels of a source and its local include files, in the order of the text.

    >>> text = "template <typename T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }"
    >>> kernels(Source.read(text))
    [KernelName(name='twice', template=('T',))]
    """
    found = {KernelName(d.name, d.template_names): None for d in declarations(source).kernels}
    return list(found)


def parse(source: Source, name: str, parameters: Mapping[str, str] | None = None) -> Signature:
    """The signature of one kernel.

    Parameters
    ----------
    source : Source
    name : str
        With template arguments where the kernel is a template: "scale<float>".
    parameters : mapping of name to C type, optional
        Declares the parameters, in their order, where the source cannot be read.

    Raises
    ------
    KernelCompileError
        If there is no such kernel, or several of that name, or if a type is not known; if template
        arguments are missing or too many.

    >>> text = "template <typename T> __global__ void twice(T* x, int n) {}"
    >>> print(parse(Source.read(text), "twice<double>"))
    twice<double>(double* x, int n)
    """
    function, template_args = split_name(name)
    where = f"{source.name}: {name}"
    if parameters is not None:
        types = TypeReader(where, {}, {})
        texts = [f"{ctype} {parameter}" for parameter, ctype in parameters.items()]
        bounds = _declared_bounds(source, function, template_args)
    else:
        declaration = _find(source, name, function)
        bound = _bind(source, name, declaration, template_args)
        types = TypeReader(where, declarations(source).aliases, bound)
        texts = [" ".join(tokens) for tokens in split(declaration.parameters)]
        bounds = _bounds(source, declaration, bound)
    read = [types.parameter(t, f"argument_{i}") for i, t in enumerate(texts) if t != "void"]
    return Signature(name, function, template_args, tuple(read), bounds)


def split_name(name: str) -> tuple[str, tuple[str, ...]]:
    """The function and its template arguments: "ns::k<float, 16>" is ("k", ("float", "16"))."""
    head, bracket, rest = name.strip().partition("<")
    args = split(code(rest.rpartition(">")[0])) if bracket else []
    return head.strip().rpartition("::")[2], tuple(joined(tokens) for tokens in args)


def _find(source: Source, name: str, function: str) -> Declaration:
    """The one declaration of that name, or an error that lists the kernels of the file."""
    found = [d for d in declarations(source).kernels if d.name == function]
    found = [d for d in found if d.defined] or found  # a declaration before its definition
    distinct = {(d.parameters, d.template): d for d in found}
    if len(distinct) == 1:
        return found[0]
    if found:
        expected = "a kernel that is declared once"
        got = f"{name!r}: {len(distinct)} overloads"
        raise KernelCompileError(source.name, "name", expected, got, f"rename them, or {DECLARE}")
    known = [k.name for k in kernels(source)]
    hint = nearest(function, known)
    listing = f"it has {', '.join(known)}" if known else "it has none"
    expected = f"a __global__ function of the file: {listing}"
    way_out = hint or f"correct the name; where a macro writes the kernel, {DECLARE}"
    raise KernelCompileError(source.name, "name", expected, repr(name), way_out)


def _bind(
    source: Source, name: str, declaration: Declaration, args: tuple[str, ...]
) -> dict[str, list[str]]:
    """Each template parameter with its argument, or its default."""
    parameters = declaration.template_parameters
    bound: dict[str, list[str]] = {}
    for position, (parameter, default) in enumerate(parameters):
        if position < len(args):
            bound[parameter] = code(args[position])
        elif default:  # a default may name a parameter before it
            bound[parameter] = [t for d in default for t in bound.get(d, [d])]
        elif not declaration.variadic:
            example = ", ".join(["float", *("16" for _ in parameters[1:])])
            expected = "template arguments for " + ", ".join(p for p, _ in parameters)
            way_out = f'name="{declaration.name}<{example}>"'
            raise KernelCompileError(source.name, "name", expected, repr(name), way_out)
    if len(args) > len(parameters) and not declaration.variadic:
        expected = f"at most {len(parameters)} template arguments"
        way_out = f'name="{declaration.name}"' if not parameters else ""
        raise KernelCompileError(source.name, "name", expected, repr(name), way_out)
    return bound


def _bounds(source: Source, declaration: Declaration, bound: Mapping[str, list[str]]) -> int | None:
    """The first argument of `__launch_bounds__`, if its value can be told."""
    known = dict(declarations(source).constants)
    for name, tokens in bound.items():
        value = evaluate(tokens, known)
        if value is not None:
            known[name] = value
    arguments = split(declaration.launch_bounds)
    return evaluate(list(arguments[0]), known) if arguments else None


def _declared_bounds(source: Source, function: str, args: tuple[str, ...]) -> int | None:
    """Launch bounds of a kernel whose parameters are declared by hand, if it can be found."""
    found = [d for d in declarations(source).kernels if d.name == function and d.launch_bounds]
    if len(found) != 1:
        return None
    names = [parameter for parameter, _ in found[0].template_parameters]
    return _bounds(source, found[0], {n: code(a) for n, a in zip(names, args, strict=False)})
