"""Launches as C++ calls.

    scale<float><<<grid, block>>>(x, n);

becomes, on the same lines,

    tg_launch("scale<float>", TG_KERNEL(scale<float>)).with(grid, block)(x, n);

so that overloads, default arguments and deduced template arguments are what C++ makes of the
call.  Where parameters are references, `tg_references` says which: they get no copies.  A cast
`(void *)scale<float>`, which forgets the parameters, becomes
`(void *)tg_known(scale<float>)`.  And `malloc` becomes `tg_malloc`, which takes memory of the heap
of the device where a kernel calls it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tinygraph.cuda.reading.tokens import Token, closing, joined, split, tokens

_ATTRIBUTES = {"__launch_bounds__", "__attribute__", "__cluster_dims__", "__maxnreg__", "alignas"}
_INDICES = {"threadIdx", "blockIdx", "blockDim", "gridDim"}
_HEAP = {"malloc", "free"}
_ALL = (1 << 63) - 1  # parameters
_OPEN = {")": "(", "]": "[", ">": "<"}


def rewrite(text: list[Token]) -> list[Token]:
    """The tokens of a program with its launches as calls.

    >>> text = list(tokens("int main() { ns::k<2><<<1, 32>>>(x); }"))
    >>> print("".join(token.text for token in rewrite(text)))
    int main() { tg_launch("ns::k<2>", TG_KERNEL(ns::k<2>)).with(1, 32)(x); }
    """
    found = [_macro(token) if token.kind == "directive" else token for token in text]
    kernels = _kernels(found)
    return _known(_heap(_without_noinline(_launches(_indices(found), kernels))), set(kernels))


def _macro(directive: Token) -> Token:
    """A directive; what a macro stands for is rewritten too."""
    if not any(name in directive.text for name in ("<<<", *_INDICES, *_HEAP)):
        return directive
    at = directive.text.index("#") + 1
    body = _heap(_launches(_indices(list(tokens(directive.text[at:]))), {}))
    return Token("directive", directive.text[:at] + "".join(token.text for token in body))


def _launches(text: list[Token], references: Mapping[str, int]) -> list[Token]:
    """Each `kernel<<<...>>>` as `tg_launch(...).with(...)`."""
    out: list[Token] = []
    open_launches, at = 0, 0
    while at < len(text):
        if _is(text, at, "<<<"):
            first = _callee(out)
            if first is not None:
                name = joined(t.text for t in out[first:] if t.is_code)
                quoted = name.replace("\\", "\\\\").replace('"', '\\"')
                mask = references.get(name.partition("<")[0].rpartition("::")[2].strip(), 0)
                known = f", tg_references<{mask:#x}>()" if mask else ""
                call = f'tg_launch("{quoted}", TG_KERNEL({name}){known}).with('
                out[first:] = [Token("word", call)]
                open_launches, at = open_launches + 1, at + 3
                continue
        if open_launches and _is(text, at, ">>>"):
            out.append(Token("mark", ")"))
            open_launches, at = open_launches - 1, at + 3
            continue
        out.append(text[at])
        at += 1
    return out


def _is(text: list[Token], at: int, marks: str) -> bool:
    return "".join(token.text for token in text[at : at + 3]) == marks


def _callee(out: list[Token]) -> int | None:
    """Where the expression in front of `<<<` begins; None if there is none."""
    at = _before(out, len(out))
    while at >= 0:
        if out[at].text in _OPEN:
            at = _opening(out, at)
            before = _before(out, at)
            if out[at].text == "(" and not (before >= 0 and out[before].kind == "word"):
                return at
            at = before
            continue
        if out[at].kind != "word":
            return None
        before = _before(out, at)
        mark = out[before].text if before >= 0 else ""
        if mark == "template":
            before = _before(out, before)
            mark = out[before].text
        if mark == ">" and before and out[before - 1].text == "-":
            at = _before(out, before - 1)
        elif mark in ("::", "."):
            at = _before(out, before)
            if at < 0 or (out[at].kind != "word" and out[at].text not in _OPEN):
                return before  # ::kernel
        else:
            return at
    return None


def _before(out: list[Token], at: int) -> int:
    at -= 1
    while at >= 0 and not out[at].is_code:
        at -= 1
    return at


def _opening(out: list[Token], at: int) -> int:
    """The bracket that the one at `at` closes."""
    close = out[at].text
    depth = 0
    while at > 0:
        if close == ">" and out[at].text == ")":
            at = _opening(out, at) - 1  # its signs are no brackets
            continue
        depth += (out[at].text == close) - (out[at].text == _OPEN[close])
        if depth == 0:
            return at
        at -= 1
    return 0


# ---- threadIdx and its like ---------------------------------------------------------------------


def _indices(text: list[Token]) -> list[Token]:
    """`threadIdx` as `tg_threadIdx`, but not a variable of the host or a member of that name.

    >>> text = list(tokens("void k() { blockDim.x; } void m() { dim3 blockDim(2); blockDim.x; }"))
    >>> print("".join(token.text for token in _indices(text)))
    void k() { tg_blockDim.x; } void m() { dim3 blockDim(2); blockDim.x; }
    """
    out = list(text)
    for first, last in _functions(text):
        places = [i for i in range(first, last) if text[i].is_code]
        texts = [text[i].text for i in places]
        used = [at for at, word in enumerate(texts) if word in _INDICES]
        declared = {texts[at] for at in used if _is_declared(texts, at)}
        for at in used:
            member = texts[at - 1 : at] == ["."] or texts[max(at - 2, 0) : at] == ["-", ">"]
            if texts[at] not in declared and not member:
                out[places[at]] = Token("word", f"tg_{texts[at]}")
    return out


def _is_declared(texts: list[str], at: int) -> bool:
    """Whether a name is a new variable here: a type stands before it, or `dim3 grid(2), `."""
    before = texts[at - 1] if at else ""
    if before == ",":
        begin = max((i for i in range(at) if texts[i] in (";", "{", "}")), default=-1)
        return "dim3" in texts[begin + 1 : at]
    return before in ("dim3", "uint3", "int", "unsigned", "size_t", "auto", "const", "long")


def _functions(text: list[Token]) -> list[tuple[int, int]]:
    """The text cut behind each outermost body that is not that of a namespace."""
    found, first, depth, bodies = [], 0, 0, list[bool]()
    head: list[str] = []
    for at, token in enumerate(text):
        if token.text == "{" and token.kind == "mark":
            bodies.append("namespace" not in head and head[-2:-1] != ["extern"])
            depth += bodies[-1]
            head = []
        elif token.text == "}" and token.kind == "mark" and bodies:
            if bodies.pop():
                depth -= 1
                if depth == 0:
                    found.append((first, at + 1))
                    first = at + 1
            head = []
        elif token.is_code:
            head = [] if token.text == ";" else [*head[-8:], token.text]
    return [*found, (first, len(text))]


# ---- kernels by their address -------------------------------------------------------------------


def _kernels(text: list[Token]) -> dict[str, int]:
    """The names of all `__global__` functions; as bits, which of their parameters are references.

    >>> _kernels(list(tokens("__global__ void k(int& x, A<B&> y, T (&z)[2], F f = F(&g)) {}")))
    {'k': 5}
    """
    found: dict[str, int] = {}
    code = [token for token in text if token.is_code]
    for at, token in enumerate(code):
        if token.text != "__global__":
            continue
        for place in range(at + 1, len(code) - 1):
            called = code[place + 1].text == "(" and code[place].kind == "word"
            if called and code[place].text not in _ATTRIBUTES:
                name = code[place].text
                texts = [t.text for t in code[place + 1 :]]
                mask = _references(texts[1 : closing(texts, 0)])
                found[name] = found.get(name, 0) | mask
                break
    return found


def _references(parameters: list[str]) -> int:
    """Which parameters are references, as bits; a pack counts to the end."""
    mask = 0
    for number, texts in enumerate(split(parameters)):
        declared, depth = texts[: texts.index("=")] if "=" in texts else texts, 0
        for at, mark in enumerate(declared):
            depth += (mark == "<") - (mark == ">")
            if mark == "&" and depth == 0:
                mask |= -1 << number if declared[at + 1 : at + 2] == ["."] else 1 << number
    return mask & _ALL


def _known(text: list[Token], names: set[str]) -> list[Token]:
    """`(void *)kernel` with the kernel's type told to the run time."""
    out = list(text)
    places = [i for i, token in enumerate(out) if token.is_code]
    texts = [out[i].text for i in places]
    for at, word in enumerate(texts):
        if word not in names or not _is_cast(texts, at):
            continue
        last = at
        if texts[at + 1 : at + 2] == ["<"]:
            last = closing(texts, at + 1)
        first = at - 1 if texts[at - 1] == "&" else at
        out[places[first]] = Token("word", f"tg_known({texts[first]}")
        out[places[last]] = Token("mark", f"{out[places[last]].text})")
    return out


def _is_cast(texts: list[str], at: int) -> bool:
    """Whether `(void *)` or `(const void *)` stands before a name, or before `&` and the name."""
    at -= texts[at - 1] == "&"
    return texts[max(at - 3, 0) : at] == ["void", "*", ")"]


def _without_noinline(text: list[Token]) -> list[Token]:
    """`__noinline__` as an attribute: a macro would break `__attribute__((__noinline__))`."""
    out, last = [], ""
    for token in text:
        if token.text == "__noinline__" and last != "(":
            out.append(Token("word", "__attribute__((noinline))"))
        else:
            out.append(token)
        last = token.text if token.is_code else last
    return out


def _heap(text: list[Token]) -> list[Token]:
    """`malloc(` and `free(` as functions that know whether a kernel calls them.

    >>> text = list(tokens("p = malloc(8); q->free(p); std::free(p);"))
    >>> print("".join(token.text for token in _heap(text)))
    p = tg_malloc(8); q->free(p); std::free(p);
    """
    out = list(text)
    places = [i for i, token in enumerate(text) if token.is_code]
    texts = [text[i].text for i in places]
    for at, word in enumerate(texts):
        member = texts[max(at - 2, 0) : at]
        if word not in _HEAP or texts[at + 1 : at + 2] != ["("]:
            continue
        if (
            member[-1:] != ["."]
            and member not in (["-", ">"], [":", ":"])
            and member[-1:] != ["::"]
        ):
            out[places[at]] = Token("word", f"tg_{word}")
    return out
