"""The kernels and type names that a CUDA source declares, found in its tokens.

Only what stands at namespace scope counts: a typedef inside one function says nothing of another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from tinygraph.cuda.reading.preprocessor import evaluate, preprocess
from tinygraph.cuda.reading.source import Source
from tinygraph.cuda.reading.tokens import closing, split

Tokens = tuple[str, ...]

_TAKES_ARGUMENTS = {
    "__launch_bounds__",
    "__attribute__",
    "__cluster_dims__",
    "__maxnreg__",
    "__block_size__",
    "alignas",
    "__declspec",
}


@dataclass(frozen=True)
class Declaration:
    """A `__global__` function as it is written."""

    name: str
    parameters: Tokens  # between the parentheses
    template: Tokens = ()  # between the angle brackets of `template <...>`
    launch_bounds: Tokens = ()  # between the parentheses of `__launch_bounds__(...)`
    defined: bool = True  # whether a body follows

    @property
    def template_parameters(self) -> list[tuple[str, Tokens]]:
        """Each template parameter's name and its default (empty where it has none)."""
        found = []
        for part in split(self.template):
            at = part.index("=") if "=" in part else len(part)
            names = [t for t in part[:at] if _is_word(t)]
            if names:
                found.append((names[-1], tuple(part[at + 1 :])))
        return found

    @property
    def template_names(self) -> Tokens:
        return tuple(name for name, _ in self.template_parameters)

    @property
    def variadic(self) -> bool:
        return "." in self.template


@dataclass
class Declarations:
    """All kernels of a source, and what its type names stand for."""

    kernels: list[Declaration] = field(default_factory=list)
    aliases: dict[str, Tokens] = field(default_factory=dict)  # a struct's name: no tokens
    constants: dict[str, int] = field(default_factory=dict)  # of `constexpr int THREADS = 256`


@lru_cache(maxsize=64)
def declarations(source: Source) -> Declarations:
    """Read a source; cached, because one file holds many kernels.

    >>> found = declarations(Source.read("using X = float; __global__ void k(X* x) {}"))
    >>> found.kernels[0].name, found.kernels[0].parameters, found.aliases
    ('k', ('X', '*', 'x'), {'X': ('float',)})
    """
    found = Declarations()
    for statement, defined in _statements(preprocess(source)):
        if "__global__" in statement:
            kernel = _kernel(statement, defined)
            if kernel:
                found.kernels.append(kernel)
        elif "=" in statement and statement[0] in ("const", "constexpr", "static"):
            _constant(statement, found.constants)
        else:
            _alias(statement, found.aliases)
    return found


def _is_word(token: str) -> bool:
    return token[0].isalpha() or token[0] == "_"


def _statements(tokens: Tokens) -> list[tuple[Tokens, bool]]:
    """The declarations at namespace scope, and whether each has a body; bodies are left out."""
    found: list[tuple[Tokens, bool]] = []
    start = at = 0
    while at < len(tokens):
        token = tokens[at]
        if token == ";":
            found.append((tokens[start:at], False))
            start = at + 1
        elif token == "}":  # of a namespace or an extern "C" block
            start = at + 1
        elif token == "{":
            head = tokens[start:at]
            if not _opens_namespace(head):
                at = closing(tokens, at)
                found.append((head, True))
                # What follows the body of a struct up to the semicolon names its type.
                if "typedef" in head or (_declares_type(head) and "__global__" not in head):
                    end = tokens.index(";", at) if ";" in tokens[at:] else len(tokens)
                    found.append(((*head, *tokens[at + 1 : end]), False))
                    at = end
            start = at + 1
        elif token in "([":
            at = closing(tokens, at)
        at += 1
    return found


def _opens_namespace(head: Tokens) -> bool:
    return "namespace" in head or head == ("extern", '"C"') or head == ("extern", '"C++"')


def _declares_type(head: Tokens) -> bool:
    """Whether `struct Name {` and its like, rather than a function, has this head."""
    return "(" not in head and any(word in head for word in ("struct", "class", "union", "enum"))


def _kernel(statement: Tokens, defined: bool) -> Declaration | None:
    """The kernel that a statement declares; None for an instantiation or a specialisation."""
    template: Tokens = ()
    bounds: Tokens = ()
    name, at = "", 0
    while at < len(statement):
        token = statement[at]
        following = statement[at + 1] if at + 1 < len(statement) else ""
        if token == "template" and following == "<":
            end = closing(statement, at + 1)
            template, at = statement[at + 2 : end], end
        elif token in _TAKES_ARGUMENTS and following == "(":
            end = closing(statement, at + 1)
            bounds = statement[at + 2 : end] if token == "__launch_bounds__" else bounds
            at = end
        elif token == "[":
            at = closing(statement, at)
        elif token == "<":
            return None
        elif token == "(":
            end = closing(statement, at)
            bounds = _trailing_bounds(statement[end:]) or bounds
            parameters = statement[at + 1 : end]
            return Declaration(name, parameters, template, bounds, defined) if name else None
        elif _is_word(token):
            name = token
        at += 1
    return None


def _trailing_bounds(tokens: Tokens) -> Tokens:
    if "__launch_bounds__" not in tokens:
        return ()
    at = tokens.index("__launch_bounds__") + 1
    return tokens[at + 1 : closing(tokens, at)]


def _constant(statement: Tokens, constants: dict[str, int]) -> None:
    """Note a constant whose value can be told, as in `constexpr int THREADS = 8 * WARP`."""
    at = statement.index("=")
    value = evaluate(list(statement[at + 1 :]), constants)
    if at and value is not None:
        constants[statement[at - 1]] = value


def _alias(statement: Tokens, aliases: dict[str, Tokens]) -> None:
    """Note what `typedef`, `using`, `struct` or `enum` declares."""
    if not statement:
        return
    if statement[0] == "using" and len(statement) > 3 and statement[2] == "=":
        aliases[statement[1]] = statement[3:]
    elif _declares_type(statement):
        kind = next(t for t in statement if t in ("struct", "class", "union", "enum"))
        plain: Tokens = ()
        if kind == "enum":  # enum Name : type; int where no type is given
            plain = statement[statement.index(":") + 1 :] if ":" in statement else ("int",)
        head = statement[: statement.index(":")] if ":" in statement else statement
        for name in head[head.index(kind) + 1 :]:
            if _is_word(name) and name not in ("class", "struct", "alignas", "final"):
                aliases.setdefault(name, plain)
    elif statement[0] == "typedef" and "(" not in statement and _is_word(statement[-1]):
        aliases[statement[-1]] = statement[1:-1]
