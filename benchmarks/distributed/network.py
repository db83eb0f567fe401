"""Closed forms: what adding gradients up over a network costs, and what larger batches give.

W ranks; g bytes of gradients; B bits a second, in each direction; l seconds until a message begins
to arrive; c seconds that a rank computes in a step.

Sources: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
JPDC 69 (2009); McCandlish et al., "An empirical model of large-batch training", arXiv:1812.06162.
"""

from __future__ import annotations

from typing import NamedTuple

BACKWARD = 2 / 3  # of what a step computes: two products for each one of forward


class Network(NamedTuple):
    """Bits a second, and seconds until a message begins to arrive."""

    name: str
    bits: float
    latency: float


ETHERNET = Network("25 Gbit/s", 25e9, 30e-6)
FABRIC = Network("200 Gbit/s", 200e9, 5e-6)


def bytes_sent(gradient: float, ranks: int) -> float:
    """What each rank sends for the sum of all gradients on all ranks: 2 (W - 1) / W * g.

    >>> bytes_sent(100, 2), bytes_sent(100, 4)
    (100.0, 150.0)
    """
    return 2 * (ranks - 1) / ranks * gradient


def ring_seconds(gradient: float, ranks: int, network: Network) -> float:
    """2 (W - 1) / W * 8 g / B + 2 (W - 1) l: in W - 1 turns everybody passes a W-th of the sum on,
    in as many more a W-th of the result.

    >>> ring_seconds(1e9, 2, Network("", 8e9, 0.5))
    2.0
    """
    return bytes_sent(gradient, ranks) * 8 / network.bits + 2 * (ranks - 1) * network.latency


def step_seconds(compute: float, exchange: float, overlapped: bool) -> float:
    """c + t, or c + max(0, t - 2/3 c) where gradients are sent while backward goes on.

    >>> step_seconds(3.0, 1.0, False), step_seconds(3.0, 1.0, True), step_seconds(3.0, 5.0, True)
    (4.0, 3.0, 6.0)
    """
    hidden = BACKWARD * compute if overlapped else 0.0
    return compute + max(0.0, exchange - hidden)


def efficiency(
    compute: float, gradient: float, ranks: int, network: Network, *, weak: bool, overlapped: bool
) -> float:
    """Of W ranks beside W times one.

    Parameters
    ----------
    compute : float
        Seconds of a step on one rank.
    weak : bool
        Each rank has as large a batch as one had alone; else that batch is shared, and each rank
        computes c / W.

    >>> fast = Network("", 8e9, 0.0)
    >>> efficiency(1.0, 0.5e9, 2, fast, weak=True, overlapped=False)  # 0.5 s are sent
    0.6666666666666666
    >>> efficiency(1.0, 0.5e9, 2, fast, weak=False, overlapped=False)
    0.5
    """
    own = compute if weak else compute / ranks
    return own / step_seconds(own, ring_seconds(gradient, ranks, network), overlapped)


def most_ranks(
    compute: float, gradient: float, network: Network, *, weak: bool, overlapped: bool, least: float
) -> int:
    """The largest power of two, up to 1024, at which efficiency is still at least so much.

    >>> most_ranks(1.0, 1e6, Network("", 8e9, 0.0), weak=True, overlapped=False, least=0.9)
    1024
    """
    found = 1
    for ranks in POWERS:
        if efficiency(compute, gradient, ranks, network, weak=weak, overlapped=overlapped) < least:
            break
        found = ranks
    return found


POWERS = tuple(1 << k for k in range(1, 11))  # 2 ... 1024


def steps_over_fewest(batch: float, critical: float) -> float:
    """Steps to a loss, over those with exact gradients: 1 + Bc / B (McCandlish et al., eq. 2.11).

    >>> steps_over_fewest(100, 100)
    2.0
    """
    return 1 + critical / batch


def examples_over_fewest(batch: float, critical: float) -> float:
    """Samples to a loss, over those with the smallest batch: 1 + B / Bc.

    >>> examples_over_fewest(100, 100)
    2.0
    """
    return 1 + batch / critical


def speedup(ranks: int, batch: float, critical: float, step_ratio: float = 1.0) -> float:
    """How many times sooner a loss is reached by W ranks with B samples each than by one with B.

    The steps become fewer, (1 + Bc/B) / (1 + Bc/(W B)), never less than 1 + Bc/B times; each takes
    `step_ratio` times as long.

    >>> speedup(4, 100, 100), speedup(1024, 100, 100) < 2
    (1.6, True)
    """
    alone, together = steps_over_fewest(batch, critical), steps_over_fewest(ranks * batch, critical)
    return alone / together / step_ratio


def noise_scale(small: float, large: float, norm_small: float, norm_large: float) -> float:
    """The simple noise scale tr(S) / |G|^2 from mean squared norms of gradients of two batch sizes.

    E|G_B|^2 = |G|^2 + tr(S) / B (McCandlish et al., appendix A.1); it is about the critical batch.

    >>> noise_scale(1, 2, 5.0, 3.0)  # |G|^2 = 1, tr(S) = 4
    4.0
    """
    signal = (large * norm_large - small * norm_small) / (large - small)
    noise = (norm_small - norm_large) / (1 / small - 1 / large)
    return noise / signal
