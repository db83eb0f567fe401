"""Bytecode: which names a function reads and writes, as far as its instructions tell.

self.config.rate           LOAD_FAST self, LOAD_ATTR config, LOAD_ATTR rate
self.calls += 1            the same with a COPY, which reads; STORE_ATTR then has no name of it
self.shape = x.shape       STORE_ATTR after `self`: a target
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

Step = tuple[bool, Any]  # whether it is an element, by a constant, and the name or the constant

_NONE: Any = object()


class Chain(NamedTuple):
    """A variable, and what is read of it: `self.config.rate`."""

    kind: str  # "global", "free" or "local"
    name: str
    steps: tuple[Step, ...] = ()
    is_target: bool = False  # whether the last step is written, not read


@lru_cache(maxsize=4096)
def chains_of(code: CodeType) -> tuple[Chain, ...]:
    """What a function reads of variables that it does not set itself, in order.

    >>> chains_of((lambda self: self.config["rate"] * scale).__code__)[0].steps
    ((False, 'config'), (True, 'rate'))
    """
    stored = [name for made in dis.get_instructions(code) for name in _stored(made)]
    aliases: dict[str, Chain] = {}  # local variables that stand for a chain
    found: dict[Chain, None] = {}
    for chain, alias in _walked(code, aliases):
        if chain.kind != "local" or chain.name not in stored:
            found[chain] = None
            if alias is not None and stored.count(alias) == 1:
                aliases[alias] = chain
    return tuple(found)


def _walked(code: CodeType, aliases: dict[str, Chain]) -> Iterator[tuple[Chain, str | None]]:
    """Each chain, and the local variable that it is stored in."""
    chain: Chain | None = None
    constant: Any = _NONE  # that was loaded on top of the chain
    for made in dis.get_instructions(code):
        name, given = made.opname, made.argval
        if name in ("EXTENDED_ARG", "PUSH_NULL", "CACHE", "NOP"):
            continue
        if name == "COPY" and chain is not None:  # of `self.calls += 1`: it is read on
            continue
        if chain is not None:
            if name in ("STORE_ATTR", "DELETE_ATTR") and constant is _NONE:
                steps = (*chain.steps, (False, given))
                yield chain._replace(steps=steps, is_target=True), None
                chain = None
                continue
            if name in ("STORE_SUBSCR", "DELETE_SUBSCR") and constant is not _NONE:
                steps = (*chain.steps, (True, constant))
                yield chain._replace(steps=steps, is_target=True), None
                chain, constant = None, _NONE
                continue
            if name in ("LOAD_ATTR", "LOAD_METHOD") and constant is _NONE:
                chain = chain._replace(steps=(*chain.steps, (False, given)))
                continue
            if name in ("LOAD_CONST", "LOAD_SMALL_INT") and type(given) in (str, int):
                if constant is _NONE:
                    constant = given
                    continue
            elif constant is not _NONE and (name == "BINARY_SUBSCR" or made.argrepr == "[]"):
                chain = chain._replace(steps=(*chain.steps, (True, constant)))
                constant = _NONE
                continue
            yield chain, given if name == "STORE_FAST" and constant is _NONE else None
        if name == "STORE_GLOBAL" or (name == "STORE_DEREF" and given in code.co_freevars):
            yield Chain("global" if name == "STORE_GLOBAL" else "free", given, (), True), None
        chain, constant = _begun(name, given, code, aliases), _NONE
    if chain is not None:
        yield chain, None


def _begun(opname: str, given: Any, code: CodeType, aliases: dict[str, Chain]) -> Chain | None:
    """The variable that an instruction leaves on top of the stack."""
    if opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        return Chain("global", given)
    if opname == "LOAD_DEREF":
        return Chain("free" if given in code.co_freevars else "local", given)
    if opname.startswith("LOAD_FAST") or opname == "STORE_FAST_LOAD_FAST":
        name = given[-1] if isinstance(given, tuple) else given
        return aliases.get(name) or Chain("local", name)
    return None


def _stored(made: dis.Instruction) -> tuple[str, ...]:
    """The variables that an instruction changes."""
    if not made.opname.startswith(("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF")):
        return ()
    names: tuple[str, ...] = made.argval if isinstance(made.argval, tuple) else (made.argval,)
    return names[:1] if made.opname == "STORE_FAST_LOAD_FAST" else names
