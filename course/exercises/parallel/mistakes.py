"""What goes wrong in exercise 15; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake
from tinygraph_course.exercises.parallel.mistakes_in_the_ring import IN_THE_RING
from tinygraph_course.exercises.parallel.mistakes_in_the_step import IN_THE_STEP

_SHARD = "return [(begins[w], begins[w + 1]) for w in range(workers)]"
_BEGINS = "begins = [w * size + min(w, more) for w in range(workers + 1)]"
_WEIGH = "np.sum(weighed, axis=0)"
_SPREAD = "v + (m - mean) ** 2"
_VARIANCE = "return mean, variance"

MISTAKES = [
    Mistake(
        1,
        "remainder-dropped",
        "Samples are left over, and nobody has them: n // workers rounds down. The n % workers\n"
        "first workers take one more each.",
        [(_BEGINS, "begins = [w * size for w in range(workers + 1)]")],
    ),
    Mistake(
        1,
        "remainder-to-the-last",
        "Your last worker takes all that is left over, up to workers - 1 samples more than the\n"
        "others, who wait for it. Give the first ones one more each.",
        [(_BEGINS, "begins = [w * size for w in range(workers)] + [n]")],
    ),
    Mistake(
        1,
        "rounded-up",
        "You round up: the last worker gets what the others leave, often far less, and the\n"
        "others are slower than they need be. Sizes differ by at most 1.",
        [(_BEGINS, "begins = [min(w * -(-n // workers), n) for w in range(workers + 1)]")],
    ),
    Mistake(
        1,
        "same-shard-for-all",
        "All your workers have the same samples: they compute the same gradient, and the rest\n"
        "of the batch is never looked at. Worker w begins where worker w - 1 ends.",
        [(_SHARD, "return [(begins[0], begins[1]) for w in range(workers)]")],
        [[(_SHARD, "return [(0, n) for w in range(workers)]")]],
    ),
    Mistake(
        1,
        "sizes",
        "Your second number is how many samples a worker has; where they end is wanted.",
        [(_SHARD, "return [(begins[w], begins[w + 1] - begins[w]) for w in range(workers)]")],
    ),
    Mistake(
        1,
        "last-sample-included",
        "Your second number is the last sample of a shard; as in a slice it is the one behind\n"
        "the last, where the next shard begins.",
        [(_SHARD, "return [(begins[w], begins[w + 1] - 1) for w in range(workers)]")],
    ),
    Mistake(
        1,
        "larger-ones-elsewhere",
        "The sizes are right, and the larger shards are not the first ones. Each worker computes\n"
        "all borders by itself, and all have to find the same: the larger ones come first.",
        [(_BEGINS, "begins = [w * n // workers for w in range(workers + 1)]")],
        [
            [
                (
                    _BEGINS,
                    "begins = [w * size + max(0, w + more - workers) for w in range(workers + 1)]",
                )
            ],
            [(_BEGINS, "begins = [-(-w * n // workers) for w in range(workers + 1)]")],
            [(_BEGINS, "begins = [round(w * n / workers) for w in range(workers + 1)]")],
        ],
    ),
    Mistake(
        2,
        "mean-of-means",
        "That is the mean of the means: a worker with one sample counts as much as one with\n"
        "ten. Weigh each gradient by its number of samples.",
        [(_WEIGH, "sum(of_workers) / len(sizes)")],
    ),
    Mistake(
        2,
        "sum",
        "That is the sum of the gradients. They are means: weigh each by its share of the\n"
        "samples, or your step is as many times too large as there are workers.",
        [(_WEIGH, "sum(of_workers)")],
    ),
    Mistake(
        2,
        "not-divided",
        "You weigh each gradient by its number of samples, and do not divide by all of them:\n"
        "that is the sum over the samples, not their mean.",
        [(_WEIGH, "sum(n * g for n, g in zip(sizes, of_workers, strict=True))")],
    ),
    Mistake(
        2,
        "divided-by-workers",
        "You weigh by the number of samples, and divide by the number of workers. Divide by the\n"
        "number of all samples.",
        [(_WEIGH, "sum(n / len(sizes) * g for n, g in zip(sizes, of_workers, strict=True))")],
    ),
    Mistake(
        2,
        "sums-taken-for-means",
        "You divide the sum of the gradients by the number of samples. Each g is a mean already:\n"
        "multiply it by its n first.",
        [(_WEIGH, "sum(of_workers) / total")],
    ),
    Mistake(
        2,
        "divided-by-the-samples",
        "You divide each gradient by its n: the more samples a worker has, the less it counts.\n"
        "Multiply by n, and divide by the number of all samples.",
        [
            (
                _WEIGH,
                "sum(g / n for n, g in zip(sizes, of_workers, strict=True))"
                " / sum(1 / n for n in sizes)",
            )
        ],
        [
            [
                (
                    _WEIGH,
                    "sum(g / n for n, g in zip(sizes, of_workers, strict=True))",
                )
            ],
            [(_WEIGH, "sum(total / n * g for n, g in zip(sizes, of_workers, strict=True))")],
        ],
    ),
    Mistake(
        2,
        "first-worker-alone",
        "That is the gradient of worker 0 alone, or weighed by its size.",
        [(_WEIGH, "of_workers[0]")],
        [[(_WEIGH, "sizes[0] / total * of_workers[0]")]],
    ),
    Mistake(
        2,
        "first-parameter-alone",
        "You combine the first parameter and no other: a gradient is a list with an array for\n"
        "each parameter.",
        [("return means\n", "return means[:1]\n")],
    ),
    Mistake(
        3,
        "mean-of-variances",
        "That is the mean of the variances. The shards lie around means of their own, and how\n"
        "far these are from the mean of all belongs to the variance too: (mean_w - mean)**2.",
        [(_SPREAD, "v")],
    ),
    Mistake(
        3,
        "one-shard",
        "Those are mean and variance of one shard. Batch norm per shard is another function than\n"
        "batch norm of the batch: what a sample becomes depends on who has it.",
        [(_VARIANCE, "return means[0], variances[0]")],
        [[(_VARIANCE, "return means[-1], variances[-1]")]],
    ),
    Mistake(
        3,
        "shards-count-alike",
        "Every shard counts alike in your mean, or in your variance: weigh it by its size.",
        [
            (
                "combine([[m] for m in means], sizes)",
                "combine([[m] for m in means], [1] * len(sizes))",
            ),
            ("combine(spread, sizes)", "combine(spread, [1] * len(sizes))"),
        ],
        [
            [("combine(spread, sizes)", "combine(spread, [1] * len(sizes))")],
            [
                (
                    "combine([[m] for m in means], sizes)",
                    "combine([[m] for m in means], [1] * len(sizes))",
                )
            ],
            [
                (
                    "combine([[m] for m in means], sizes)",
                    "combine([[m] for m in means], [1] * len(sizes))",
                ),
                (_VARIANCE, "return mean, sum(variances) / len(variances)"),
            ],
        ],
    ),
    Mistake(
        3,
        "distance-not-squared",
        "The distance of a shard's mean from the mean of all counts squared in a variance.",
        [(_SPREAD, "v + abs(m - mean)")],
    ),
    Mistake(
        3,
        "spread-alone",
        "That is how far the means of the shards lie from each other; what is inside of a shard,\n"
        "its own variance, is missing.",
        [(_SPREAD, "(m - mean) ** 2")],
    ),
    Mistake(
        3,
        "divided-by-n-minus-1",
        "Your variance divides by n - 1, as an estimate for numbers that were not drawn does.\n"
        "Batch norm normalises these very numbers: divide by n.",
        [(_VARIANCE, "return mean, variance * sum(sizes) / max(1, sum(sizes) - 1)")],
    ),
    Mistake(
        3,
        "squares-of-the-mean-missing",
        "That is the mean of the squares, var + mean**2. The square of the mean of all has to be\n"
        "taken off.",
        [(_SPREAD, "v + m**2")],
    ),
    Mistake(
        3,
        "standard-deviation",
        "That is the standard deviation, the root of the variance.",
        [(_VARIANCE, "return mean, np.sqrt(variance)")],
    ),
    *IN_THE_RING,
    *IN_THE_STEP,
]
