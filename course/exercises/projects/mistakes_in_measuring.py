"""What goes wrong in steps 5 and 6 of exercise 16: what the test has seen, and times."""

from tinygraph_course.content.exercise import Mistake

_ORDER = "order = np.random.default_rng(seed).permutation(len(pictures))"
_HELD = "validation = [pictures[i] for i in order[:held]]"
_REST = "training = [pictures[i] for i in order[held:]]"
_QUALITY = "quality = measure(parameters, validation)"
_IF = "if quality > found:"
_RETURN = "return best, measure(kept, test)"
_LOOP = """    for _ in range(repeats):
        begun = clock()
        run()
        seconds.append(clock() - begun)
"""
_WARM = "    run()\n    seconds = []\n"
_MEDIAN = "return float(np.median(seconds))"

IN_MEASURING = [
    Mistake(
        5,
        "validation-in-training",
        "The network learns from the pictures of the validation too. It knows them by heart then,\n"
        "and the best epoch is always the last one: take them out of the training.",
        [(_REST, "training = list(pictures)")],
    ),
    Mistake(
        5,
        "best-on-test",
        "You choose the epoch by the test. The figure is the largest of several that waver, and\n"
        "nothing is left that the choice has not seen: choose on the validation.",
        [(_QUALITY, "quality = measure(parameters, test)")],
        [[(_QUALITY, "quality = measure(parameters, test)"), (_RETURN, "return best, found")]],
    ),
    Mistake(
        5,
        "test-in-every-epoch",
        "You measure the test several times. Whoever has seen that curve chooses by it, if only\n"
        "when to stop: measure once, at the end.",
        [
            (
                _QUALITY,
                "quality = measure(parameters, validation)\n        measure(parameters, test)",
            )
        ],
        [
            [
                (
                    _IF,
                    "if quality > found:\n            result = measure(parameters, test)",
                ),
                (_RETURN, "return best, result"),
            ]
        ],
    ),
    Mistake(
        5,
        "test-in-training",
        "The network learns from the test pictures: what it has on them says nothing any more.",
        [(_REST, "training = [pictures[i] for i in order[held:]] + list(test)")],
    ),
    Mistake(
        5,
        "best-on-training",
        "You choose the epoch by what the network has on the pictures that it learns from. That\n"
        "grows on while it learns them by heart.",
        [(_QUALITY, "quality = measure(parameters, training)")],
    ),
    Mistake(
        5,
        "validation-reported",
        "You report the quality on the validation. The epoch was chosen because it is high there:\n"
        "the test is for what is reported.",
        [(_RETURN, "return best, found")],
    ),
    Mistake(
        5,
        "last-epoch",
        "You report the last epoch, whatever the validation says.",
        [(_RETURN, "return epochs, measure(parameters, test)")],
    ),
    Mistake(
        5,
        "last-parameters",
        "The epoch is the best one, and what is measured are the parameters of the last one: keep\n"
        "those that were best.",
        [(_RETURN, "return best, measure(parameters, test)")],
    ),
    Mistake(
        5,
        "counted-from-zero",
        "Your epochs count from 0; the first one is 1.",
        [(_RETURN, "return best - 1, measure(kept, test)")],
    ),
    Mistake(
        5,
        "last-of-equals",
        "Of two epochs that are equally good your later one counts; the first one does, which\n"
        "cost less.",
        [(_IF, "if quality >= found:")],
    ),
    Mistake(
        5,
        "smallest",
        "You take the epoch with the smallest number. A loss would be best there; PSNR is better\n"
        "when it is larger.",
        [
            (_IF, "if quality < found:"),
            ("best, kept, found = 0, None, -np.inf", "best, kept, found = 0, None, np.inf"),
        ],
    ),
    Mistake(
        5,
        "seed-not-fixed",
        "Your split does not follow from the seed: with the same one it is another split, or with\n"
        "another one the same. Draw with np.random.default_rng(seed).",
        [(_ORDER, "order = np.random.default_rng().permutation(len(pictures))")],
        [
            [(_ORDER, "order = np.random.default_rng(0).permutation(len(pictures))")],
            [(_ORDER, "order = np.random.permutation(len(pictures))")],
        ],
    ),
    Mistake(
        5,
        "not-drawn",
        "You hold out the first pictures, or the last ones. They lie in some order, and are often\n"
        "alike: draw them.",
        [(_ORDER, "order = np.arange(len(pictures))")],
        [[(_ORDER, "order = np.arange(len(pictures))[::-1]")]],
    ),
    Mistake(
        5,
        "drawn-with-replacement",
        "You draw with replacement: a picture can be in the validation twice, and others fall\n"
        "out. Shuffle them, and cut.",
        [
            (
                _ORDER,
                "order = np.random.default_rng(seed).integers(len(pictures), size=len(pictures))",
            )
        ],
        [
            [
                (
                    _HELD,
                    "chosen = np.random.default_rng(seed).integers(len(pictures), size=held)\n"
                    "    validation = [pictures[i] for i in chosen]",
                ),
                (_REST, "training = [p for i, p in enumerate(pictures) if i not in set(chosen)]"),
            ]
        ],
    ),
    Mistake(
        5,
        "parts-exchanged",
        "You train on the `held` pictures, and validate on the others.",
        [
            (_HELD, "training = [pictures[i] for i in order[:held]]"),
            (_REST, "validation = [pictures[i] for i in order[held:]]"),
        ],
    ),
    Mistake(
        6,
        "warm-up-counted",
        "Your first run is one of those that count. It compiles and fills caches, and no other\n"
        "run does: make one before.",
        [(_WARM, "    seconds = []\n")],
        [
            [
                (_WARM, "    seconds = []\n"),
                ("range(repeats)", "range(repeats + 1)"),
            ]
        ],
    ),
    Mistake(
        6,
        "one-timing",
        "You time a single run. Another program may have run meanwhile: the median of several\n"
        "does not mind.",
        [("range(repeats)", "range(1)")],
        [[("range(repeats)", "range(1)"), (_WARM, "    seconds = []\n")]],
    ),
    Mistake(
        6,
        "mean",
        "That is the mean of the times, which one slow run pulls up. Take the median.",
        [(_MEDIAN, "return float(np.mean(seconds))")],
        [
            [
                (
                    _LOOP,
                    "    begun = clock()\n"
                    "    for _ in range(repeats):\n"
                    "        run()\n"
                    "    seconds = [(clock() - begun) / repeats]\n",
                )
            ]
        ],
    ),
    Mistake(
        6,
        "fastest",
        "That is the fastest run. What a user waits for is the usual one: the median.",
        [(_MEDIAN, "return float(np.min(seconds))")],
    ),
    Mistake(
        6,
        "total",
        "That is the time of all runs together.",
        [(_MEDIAN, "return float(np.sum(seconds))")],
    ),
    Mistake(
        6,
        "times-of-the-clock",
        "You collect what the clock says, and not how much it moved on: read it before and after\n"
        "each run.",
        [("seconds.append(clock() - begun)", "seconds.append(clock())")],
    ),
    Mistake(
        6,
        "clock-read-once",
        "You read the clock once, before the first run: each of your times has all runs before it\n"
        "in it. Read it before each run.",
        [
            (
                _LOOP,
                "    begun = clock()\n"
                "    for _ in range(repeats):\n"
                "        run()\n"
                "        seconds.append(clock() - begun)\n",
            )
        ],
    ),
    Mistake(
        6,
        "middle-without-sorting",
        "You take the time in the middle of the list; the median is the middle of the sorted one.",
        [(_MEDIAN, "return float(seconds[len(seconds) // 2])")],
        [[(_MEDIAN, "n = repeats // 2; return (seconds[n] + seconds[n - 1 + repeats % 2]) / 2")]],
    ),
    Mistake(
        6,
        "upper-of-two",
        "Of an even number of times you take one of the two in the middle; the median is their\n"
        "mean.",
        [(_MEDIAN, "return float(sorted(seconds)[len(seconds) // 2])")],
        [[(_MEDIAN, "return float(sorted(seconds)[(len(seconds) - 1) // 2])")]],
    ),
]
