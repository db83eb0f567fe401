"""The pictures of the page: efficiency as bars, and over ranks as lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.distributed.network import ETHERNET, FABRIC, POWERS, efficiency
from benchmarks.distributed.recipes import Sent
from benchmarks.distributed.turns import RANKS, THREADS, Point
from benchmarks.report import new_figure

AIM = 90  # per cent
COLOURS = {THREADS: "0.65", RANKS: "C0"}


def draw_efficiency(points: Sequence[Point], labels: Sequence[str], path: Path) -> bool:
    """Bars with the range over rounds; False, and no file, without matplotlib."""
    made = new_figure(8, 1.1 + 0.62 * len(points))
    if made is None:
        return False
    figure, axes = made
    for at, point in enumerate(points):
        for offset, side in ((-0.19, RANKS), (0.19, THREADS)):
            found = point.efficiency(side)
            middle = 100 * found.median
            spread = [[middle - 100 * min(found.values)], [100 * max(found.values) - middle]]
            axes.barh(
                at + offset, middle, 0.36, color=COLOURS[side], xerr=spread,
                error_kw={"ecolor": "0.3", "capsize": 2, "elinewidth": 1},
                label=side.name if at == 0 else None,
            )  # fmt: skip
    axes.set_yticks(range(len(points)), labels)
    axes.invert_yaxis()
    axes.axvline(AIM, color="0.3", linestyle=":", linewidth=1)
    axes.set(xlabel="efficiency on two cores, % (dotted: 90)", xlim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return True


def draw_ranks(sent: Sequence[Sent], faster: float, path: Path) -> bool:
    """Expected efficiency over the number of ranks, as many samples for each as for one alone."""
    made = new_figure(8.5, 3.6) if sent else None
    if made is None:
        return False
    figure, axes = made
    for at, each in enumerate(sent):
        for network, style in ((ETHERNET, "--"), (FABRIC, "-")):
            values = [
                100 * efficiency(
                    each.seconds / faster, each.gradient, ranks, network, weak=True,
                    overlapped=False,
                )
                for ranks in POWERS
            ]  # fmt: skip
            label = f"{f'{each.name} {each.data}'.strip()}, {network.name}"
            axes.plot(POWERS, values, style, color=f"C{at}", label=label)
    axes.set(xscale="log", xlabel="ranks", ylabel="efficiency, %", ylim=(0, 102))
    axes.set_xticks(POWERS, [str(ranks) for ranks in POWERS], minor=False)
    axes.set_xticks([], minor=True)
    axes.grid(color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return True
