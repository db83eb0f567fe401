"""What goes wrong in step 4 of exercise 15, the ring."""

from tinygraph_course.content.exercise import Mistake

_NEIGHBOURS = "left, right = (rank - 1) % W, (rank + 1) % W"
_ADDS = """    for t in range(W - 1):
        send(right, parts[(rank - t) % W])
        k = (rank - t - 1) % W
        parts[k] = parts[k] + receive(left)
"""
_ROUND = """    for t in range(W - 1):  # part rank + 1 is whole now
        send(right, parts[(rank + 1 - t) % W])
        parts[(rank - t) % W] = receive(left)
"""
_BOTH = _ADDS + _ROUND
_OWNERS = """    own = parts[rank]
    for to in range(W):
        if to != rank:
            send(to, parts[to])
    for sender in range(W):
        if sender != rank:
            own = own + receive({sender})
    for to in range(W):
        if to != rank:
            send(to, own)
    return [own if w == rank else receive(w) for w in range(W)]
"""
_ORIGINALS = """    passed = list(parts)
    for t in range(W - 1):
        for part in passed:
            send(right, part)
        passed = [receive(left) for _ in range(W)]
        parts = [mine + its for mine, its in zip(parts, passed)]
"""
_STORED = """    everything = {rank: list(parts)}
    for t in range(W - 1):
        for part in everything[(rank - t) % W]:
            send(right, part)
        everything[(rank - t - 1) % W] = [receive(left) for _ in range(W)]
    return [sum(everything[w][k] for w in range(W)) for k in range(W)]
"""
_WHOLE = """    lengths = [len(part) for part in parts]
    passed = total = np.concatenate(parts)
    for t in range(W - 1):
        send(right, passed)
        passed = receive(left)
        total = total + passed
    return np.split(total, np.cumsum(lengths)[:-1])
"""
_TO_ZERO = """    if rank > 0:
        for part in parts:
            send(0, part)
    else:
        for sender in range(1, W):
            parts = [part + receive(sender) for part in parts]
"""
_BACK = """    if rank > 0:
        parts = [receive(0) for part in parts]
    else:
        for to in range(1, W):
            for part in parts:
                send(to, part)
"""

IN_THE_RING = [
    Mistake(
        4,
        "receive-first",
        "Everybody waits and nobody has sent: deadlock. In each round send first, then receive.",
        [
            (
                "        send(right, parts[(rank - t) % W])\n"
                "        k = (rank - t - 1) % W\n"
                "        parts[k] = parts[k] + receive(left)\n",
                "        k = (rank - t - 1) % W\n"
                "        parts[k] = parts[k] + receive(left)\n"
                "        send(right, parts[(rank - t) % W])\n",
            )
        ],
    ),
    Mistake(
        4,
        "waits-for-the-right",
        "You wait for the worker to whom you send. In a ring the arrays come from the other\n"
        "side, from rank - 1: with three workers nobody hears anything.",
        [
            ("parts[k] = parts[k] + receive(left)", "parts[k] = parts[k] + receive(right)"),
            ("parts[(rank - t) % W] = receive(left)", "parts[(rank - t) % W] = receive(right)"),
        ],
    ),
    Mistake(
        4,
        "ring-not-closed",
        "The last worker sends to a worker that does not exist: behind W - 1 comes 0 again,\n"
        "(rank + 1) % W.",
        [(_NEIGHBOURS, "left, right = (rank - 1) % W, rank + 1")],
    ),
    Mistake(
        4,
        "not-handed-round",
        "Each worker has one whole part, and the others are incomplete: that is half of the way,\n"
        "a reduce-scatter. The whole parts have to go round once more.",
        [(_ROUND, "")],
    ),
    Mistake(
        4,
        "rank-0-alone-is-complete",
        "Worker 0 adds up everything, and the others never learn the sum.",
        [(_BOTH, _TO_ZERO)],
        [
            [
                (
                    _BOTH,
                    "    if rank > 0:\n"
                    "        parts = [part + receive(left) for part in parts]\n"
                    "    if rank < W - 1:\n"
                    "        for part in parts:\n"
                    "            send(right, part)\n"
                    "    elif W > 1:\n"
                    "        for part in parts:\n"
                    "            send(0, part)\n"
                    "    if rank == 0 and W > 1:\n"
                    "        parts = [receive(W - 1) for part in parts]\n",
                )
            ]
        ],
    ),
    Mistake(
        4,
        "all-through-rank-0",
        "Worker 0 adds up everything and sends it to all: the numbers are right, and through one\n"
        "worker goes what W - 1 others have, while they wait. In a ring all carry the same.",
        [(_BOTH, _TO_ZERO + _BACK)],
    ),
    Mistake(
        4,
        "adds-again",
        "In the second half you add what comes. It is the whole sum already, and takes the place\n"
        "of what you have.",
        [
            (
                "parts[(rank - t) % W] = receive(left)",
                "parts[(rank - t) % W] = parts[(rank - t) % W] + receive(left)",
            )
        ],
    ),
    Mistake(
        4,
        "sums-lost",
        "What is not whole takes the place of another part, whose sum is lost. In the first half\n"
        "add what comes; in the second begin with part rank + 1, the one that is whole.",
        [("parts[k] = parts[k] + receive(left)", "parts[k] = receive(left)")],
        [
            [
                ("send(right, parts[(rank + 1 - t) % W])", "send(right, parts[(rank - t) % W])"),
                (
                    "parts[(rank - t) % W] = receive(left)",
                    "parts[(rank - t - 1) % W] = receive(left)",
                ),
            ]
        ],
    ),
    Mistake(
        4,
        "one-round-too-many",
        "You go W rounds, in one half or in both. After W - 1 each part has been with everybody;\n"
        "one more brings it back to where it was.",
        [
            (_ADDS, _ADDS.replace("range(W - 1)", "range(W)")),
            (_ROUND, _ROUND.replace("range(W - 1)", "range(W)")),
        ],
        [
            [(_ADDS, _ADDS.replace("range(W - 1)", "range(W)"))],
            [(_ROUND, _ROUND.replace("range(W - 1)", "range(W)"))],
            [  # the second half goes on with the part that came last in the first one
                (_ADDS, _ADDS.replace("range(W - 1)", "range(W)")),
                (_ROUND, _ROUND.replace("range(W - 1)", "range(W)")),
                ("send(right, parts[(rank + 1 - t) % W])", "send(right, parts[(rank - t) % W])"),
                ("parts[(rank - t) % W] = receive", "parts[(rank - t - 1) % W] = receive"),
            ],
        ],
    ),
    Mistake(
        4,
        "one-round-too-few",
        "You go W - 2 rounds: the share of one worker is missing, or one does not hear the sum.",
        [
            (_ADDS, _ADDS.replace("range(W - 1)", "range(W - 2)")),
            (_ROUND, _ROUND.replace("range(W - 1)", "range(W - 2)")),
        ],
        [
            [(_ADDS, _ADDS.replace("range(W - 1)", "range(W - 2)"))],
            [(_ROUND, _ROUND.replace("range(W - 1)", "range(W - 2)"))],
        ],
    ),
    Mistake(
        4,
        "same-part-every-round",
        "You send the same part in every round. What comes in round t has to be sent on, with\n"
        "yours added, in round t + 1.",
        [("send(right, parts[(rank - t) % W])", "send(right, parts[rank])")],
        [
            [
                ("send(right, parts[(rank - t) % W])", "send(right, parts[rank])"),
                ("send(right, parts[(rank + 1 - t) % W])", "send(right, parts[(rank + 1) % W])"),
            ]
        ],
    ),
    Mistake(
        4,
        "hands-round-the-wrong-part",
        "The second half begins with a part that is not whole. After the first half worker rank\n"
        "has the sum of part rank + 1: that is the one to send first.",
        [("send(right, parts[(rank + 1 - t) % W])", "send(right, parts[(rank - t) % W])")],
    ),
    Mistake(
        4,
        "sent-part-overwritten",
        "What comes is added to the part that you have sent. It belongs to the part before it:\n"
        "your left neighbour sends another one than you.",
        [("k = (rank - t - 1) % W", "k = (rank - t) % W")],
    ),
    Mistake(
        4,
        "mean",
        "You divide by the number of workers. The sum is wanted: who weighs the gradients does it\n"
        "before, by the samples.",
        [("    return parts\n", "    return [part / W for part in parts]\n")],
    ),
    Mistake(
        4,
        "order-by-arrival",
        "You add in the order in which arrays arrive. Sums of floats depend on the order: the\n"
        "bits are others on each worker, or in each run, and equal models drift apart.",
        [(_BOTH, _ORIGINALS)],
        [[(_BOTH, _OWNERS.format(sender=""))], [(_BOTH, _WHOLE)]],
    ),
    Mistake(
        4,
        "everything-passed-on",
        "You pass on the parts of all workers, one by one, and add at the end: the sums are\n"
        "right, and each worker sends W (W - 1) parts. Add on the way, and pass on the sum.",
        [(_BOTH, _STORED)],
    ),
    Mistake(
        4,
        "not-to-the-neighbour",
        "You send to other workers than rank + 1: the numbers are right, and every pair of\n"
        "workers needs a line. In a ring each has two neighbours, however many there are.",
        [(_BOTH, _OWNERS.format(sender="sender"))],
    ),
]
