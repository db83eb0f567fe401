"""The page: page.md, with tables of what was measured and of what follows from it by arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cpu.page import milliseconds
from benchmarks.distributed.network import (
    ETHERNET,
    FABRIC,
    Network,
    bytes_sent,
    efficiency,
    most_ranks,
    ring_seconds,
    speedup,
)
from benchmarks.distributed.plots import draw_efficiency, draw_ranks
from benchmarks.distributed.recipes import Sent
from benchmarks.distributed.turns import ONE, OVERLAP, RANKS, THREADS, Burst, Point
from benchmarks.distributed.worker import build
from benchmarks.report import table, write_page
from benchmarks.timing import Ratio, digits
from tinygraph.base.json_text import from_json, to_json

TEMPLATE = Path(__file__).with_name("page.md")
NAME = "distributed"
FASTER = 100  # a rank that computes so many times as fast: assumed, to see where a network binds
SHOWN = (2, 8, 64, 1024)  # ranks
NETWORKS = (ETHERNET, FABRIC)
LEAST = 0.9


@dataclass
class Figures:
    """All that was measured, as distributed.json holds it.

    Attributes
    ----------
    about : list of str
        Machine, versions, rounds.
    points : list of Point
    sent : list of Sent
        Of the recipes.
    overlap : list of Point
        Gradients sent at the end and in buckets.
    noise : list of (epoch, samples)
        The noise scale of numba_cnn on digits.
    """

    about: list[str]
    points: list[Point] = field(default_factory=list)
    overlap: list[Point] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    noise: list[tuple[int, float]] = field(default_factory=list)

    def to_json(self) -> str:
        found = {
            "about": self.about,
            "points": [_plain(point) for point in self.points],
            "overlap": [_plain(point) for point in self.overlap],
            "sent": self.sent,
            "noise": self.noise,
        }
        return to_json("distributed.json", found, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Figures:
        found = from_json(text)
        points, overlap = ([_point(each) for each in found[name]] for name in ("points", "overlap"))
        sent = [Sent(*each) for each in found["sent"]]
        noise = [(int(epoch), float(samples)) for epoch, samples in found["noise"]]
        return cls(found["about"], points, overlap, sent, noise)


def _plain(point: Point) -> dict[str, Any]:
    rounds = [{side: [*burst] for side, burst in each.items()} for each in point.rounds]
    return {**asdict(point), "rounds": rounds}


def _point(plain: Mapping[str, Any]) -> Point:
    rounds = [{s: Burst(*burst) for s, burst in each.items()} for each in plain["rounds"]]
    return Point(**{**plain, "rounds": rounds})


def write(folder: Path, figures: Figures) -> Path:
    """Page, pictures and figures; the path of the page."""
    path = folder / f"{NAME}.md"
    labels = [build(point.name).name for point in figures.points]
    pictures = {
        "efficiency": draw_efficiency(
            figures.points, labels, folder / f"{NAME}-efficiency.svg"
        ),
        "ranks": draw_ranks(figures.sent, FASTER, folder / f"{NAME}-ranks.svg"),
    }  # fmt: skip
    write_page(path, text(figures, pictures))
    (folder / f"{NAME}.json").write_text(figures.to_json(), encoding="utf-8")
    return path


def text(figures: Figures, pictures: Mapping[str, bool]) -> str:
    """The page in Markdown."""
    parts: dict[str, Callable[[], str]] = {
        "about": lambda: "\n".join(f"- {line}" for line in figures.about),
        "measured": lambda: measured(figures.points),
        "efficiency": lambda: _picture("efficiency", "Efficiency on two cores", pictures),
        "overlap": lambda: overlap_table(figures.overlap),
        "sent": lambda: sent_table(figures.sent),
        "weak": lambda: expected(figures.sent, weak=True),
        "strong": lambda: expected(figures.sent, weak=False),
        "fast": lambda: expected(figures.sent, weak=True, faster=FASTER),
        "ranks": lambda: _picture("ranks", "Expected efficiency", pictures),
        "faster": lambda: str(FASTER),
        "noise": lambda: noise_table(figures.noise),
        "speedup": speedup_table,
    }
    page = TEMPLATE.read_text(encoding="utf-8")
    for name, make in parts.items():
        page = page.replace("{{" + name + "}}", make())
    return page


def measured(points: Sequence[Point]) -> str:
    """A row for each network."""
    head = ["network", "gradients, kB", "a rank sends, kB"]
    head += [f"{side.name}, ms" for side in (ONE, THREADS, RANKS)]
    head += ["a sum alone, ms", "efficiency, two ranks", "two threads", "rounds; others"]
    rows = [
        [
            build(p.name).name,
            digits(p.gradient / 1e3),
            digits(p.sent / 1e3),
            *(milliseconds(p.times(side)) for side in (ONE, THREADS, RANKS)),
            digits(p.sum_seconds * 1e3),
            _percent(p.efficiency(RANKS)),
            _percent(p.efficiency(THREADS)),
            _kept(p),
        ]
        for p in points
    ]
    return table(head, rows)


def overlap_table(points: Sequence[Point]) -> str:
    """Both ways of two ranks, eager."""
    head = ["network", *(f"{side.name}, ms" for side in OVERLAP), "buckets / end", "rounds; others"]
    rows = [
        [
            build(p.name).name,
            *(milliseconds(p.times(side)) for side in OVERLAP),
            p.overlap.text(),
            _kept(p),
        ]
        for p in points
    ]
    return table(head, rows)


def sent_table(sent: Sequence[Sent]) -> str:
    """What recipes send, and how long a ring takes."""
    head = ["recipe", "batch", "a step, ms", "gradients, kB"]
    head += [f"each of {ranks} sends, kB" for ranks in (2, 1024)]
    head += [f"ring of {ranks}, {n.name}, ms" for n in NETWORKS for ranks in (2, 1024)]
    rows = []
    for each in sent:
        rings = [ring_seconds(each.gradient, ranks, n) for n in NETWORKS for ranks in (2, 1024)]
        sends = [bytes_sent(each.gradient, ranks) for ranks in (2, 1024)]
        row = [_name(each), str(each.batch), digits(each.seconds * 1e3)]
        row += [digits(n / 1e3) for n in (each.gradient, *sends)]
        rows.append([*row, *(digits(t * 1e3) for t in rings)])
    return table(head, rows)


def expected(sent: Sequence[Sent], *, weak: bool, faster: float = 1.0) -> str:
    """Efficiency in per cent; beside it the one with overlap, where that is another."""
    head = ["recipe", *(f"{ranks}, {n.name}" for n in NETWORKS for ranks in SHOWN)]
    head += [f"90 % up to, {n.name}" for n in NETWORKS]
    rows = []
    for each in sent:
        compute = each.seconds / faster
        cells = [_both(compute, each, ranks, n, weak) for n in NETWORKS for ranks in SHOWN]
        most = [
            "{} ({})".format(
                *(
                    most_ranks(compute, each.gradient, n, weak=weak, overlapped=lapped, least=LEAST)
                    for lapped in (False, True)
                )
            )
            for n in NETWORKS
        ]
        rows.append([_name(each), *cells, *most])
    return table(head, rows)


def noise_table(noise: Sequence[tuple[int, float]]) -> str:
    """The noise scale, epoch by epoch."""
    rows = [[str(epoch), digits(samples)] for epoch, samples in noise]
    return table(["after so many epochs", "noise scale, samples"], rows)


def speedup_table() -> str:
    """How much sooner a loss is reached, by the batch of a rank in critical batches."""
    ranks = (2, 8, 64, 1024)
    head = ["batch of a rank / critical batch", *(f"{w} ranks" for w in ranks), "most"]
    rows = [
        [
            f"1/{round(1 / share)}" if share < 1 else str(share),
            *(digits(speedup(w, share, 1)) for w in ranks),
            digits(1 + 1 / share),
        ]
        for share in (1 / 256, 1 / 64, 1 / 8, 1)
    ]
    return table(head, rows)


def _both(compute: float, sent: Sent, ranks: int, network: Network, weak: bool) -> str:
    found = [
        f"{100 * efficiency(compute, sent.gradient, ranks, network, weak=weak, overlapped=o):.0f}"
        for o in (False, True)
    ]
    return found[0] if found[0] == found[1] else f"{found[0]} ({found[1]})"


def _percent(ratio: Ratio) -> str:
    low, high = min(ratio.values), max(ratio.values)
    return f"{100 * ratio.median:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def _kept(point: Point) -> str:
    return f"{len(point.rounds)} of {point.made}; {point.others:.2f}"


def _picture(name: str, title: str, pictures: Mapping[str, bool]) -> str:
    return f"![{title}]({NAME}-{name}.svg)" if pictures.get(name) else ""


def _name(sent: Sent) -> str:
    return f"`{sent.name}` on {sent.data}" if sent.data else f"`{sent.name}`"
