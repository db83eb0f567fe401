"""Training steps of networks that people know, beside PyTorch's eager ones."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.gpu.steps import measured
from benchmarks.networks import CONTEXT, NETWORKS, Network

TITLE = "Networks that people know, beside PyTorch eager"


def networks(room: Room) -> list[Network]:
    """All of them; in a rehearsal two, with one sample."""
    if room.rehearse:
        lenet5, gpt = NETWORKS["lenet5"](), NETWORKS["gpt"]()
        one = replace(gpt, inputs=gpt.inputs[:1], labels=gpt.labels[:CONTEXT])
        return [replace(lenet5, inputs=lenet5.inputs[:1], labels=lenet5.labels[:1]), one]
    return [make() for make in NETWORKS.values()]


def run(room: Room) -> Result:
    return measured(room, TITLE, networks(room), {})
