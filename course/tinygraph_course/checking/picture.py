"""Which thread touched which element of an array, between which barriers: for a terminal."""

from __future__ import annotations

from typing import Any

_MOST = 8  # elements beside one another


def picture(answer: dict[str, Any], array: str) -> str:
    """The accesses of the recorded block to the first elements of an array.

        parts    [0]     [1]     [2]
        line 7   t0=     t1=     t2=
                 -- __syncthreads() -----
        line 9  t0,t0=   t1      .

    `t3=` is a write of thread 3, `t3` a read, `*` marks what the checker objects to.
    """
    if array not in answer["arrays"]:
        return ""
    number = answer["arrays"].index(array)
    own = answer["touched"][answer["touched"][:, 0] == number]
    if not len(own):
        return ""
    where = answer["findings"][0]["block"] if answer["findings"] else None
    found = [f for f in answer["findings"] if f["array"] == array and f["block"] == where]
    bad = {finding["index"] for finding in found}
    first = int(own[:, 1].min())
    drawn = {*own[:, 1].tolist(), *bad} & set(range(first, first + _MOST))
    own = own[own[:, 1] < first + _MOST]
    shown = range(first, max(drawn) + 1)
    rows: dict[tuple[int, int], dict[int, list[str]]] = {}
    for _, element, epoch, thread, write, line in own.tolist():
        cells = rows.setdefault((epoch, line), {i: [] for i in shown})
        word = f"t{thread}{'=' if write else ''}"
        if word not in cells[element]:
            cells[element].append(word)
    lines = [f"{array[:8]:8}" + "".join(f"{f'[{i}]':>9}" for i in shown)]
    before = None
    for (epoch, line), cells in sorted(rows.items()):
        if before is not None and epoch != before:
            lines.append(f"{'':8}{'-- __syncthreads() ':-<{9 * len(shown)}}")
        before = epoch
        lines.append(f"line {line:<3}" + "".join(_cell(c, i in bad) for i, c in cells.items()))
    return "\n".join([*lines, "        t3= thread 3 writes, t3 it reads, * the checker objects"])


def _cell(words: list[str], bad: bool) -> str:
    text = ",".join(words) or "."
    if len(text) > 7:
        text = f"{text[:5]}.."
    return f"{'*' if bad else ''}{text}".rjust(9)
