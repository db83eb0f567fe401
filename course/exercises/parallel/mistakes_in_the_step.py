"""What goes wrong in steps 5 and 6 of exercise 15: equal models, and a step of all."""

from tinygraph_course.content.exercise import Mistake

_LOAD = """for model in models[1:]:
        model.load_state_dict(models[0].state_dict())"""
_LOSS = "tg.mse_loss(model(x[begin:end]), y[begin:end]).backward()"
_COMBINE = "together = combine(gradients, [end - begin for begin, end in bounds])"
_UPDATE = """for model in models:
        for p, gradient in zip(model.parameters(), together, strict=True):
            p.value -= lr * gradient"""

IN_THE_STEP = [
    Mistake(
        5,
        "own-initial-weights",
        "Your models keep the weights that each was made with. Equal updates keep alike what\n"
        "began alike, and nothing else: these drift apart from the first step on.",
        [(_LOAD, "pass")],
    ),
    Mistake(
        5,
        "buffers-forgotten",
        "The parameters are alike, and the buffers are not: the running mean and variance of\n"
        "batch norm are part of what a model computes.",
        [
            (
                "model.load_state_dict(models[0].state_dict())",
                "for p, first in zip(model.parameters(), models[0].parameters(), strict=True):\n"
                "            p.value = first.value.copy()",
            )
        ],
    ),
    Mistake(
        5,
        "one-model-for-all",
        "Your list holds one and the same model several times, or models that share arrays: an\n"
        "update is made once for each worker. Each worker has a model of its own.",
        [(_LOAD, "models[1:] = [models[0]] * (len(models) - 1)")],
    ),
    Mistake(
        5,
        "from-the-last",
        "All have the weights of the last model, or each has those of the one before it: those\n"
        "of models[0] are wanted.",
        [
            (
                _LOAD,
                "for model in models[:-1]:\n        model.load_state_dict(models[-1].state_dict())",
            )
        ],
        [
            [
                (
                    _LOAD,
                    "states = [model.state_dict() for model in models]\n"
                    "    for model, state in zip(models[1:], states[:-1], strict=True):\n"
                    "        model.load_state_dict(state)",
                )
            ]
        ],
    ),
    Mistake(
        5,
        "the-other-way",
        "models[0] is changed and the others stay as they were: load_state_dict changes the model\n"
        "that it is called on.",
        [
            (
                "model.load_state_dict(models[0].state_dict())",
                "models[0].load_state_dict(model.state_dict())",
            )
        ],
    ),
    Mistake(
        5,
        "second-model-alone",
        "You give the weights to one other model, the second or the last. There may be more than\n"
        "two: all of them get those of models[0].",
        [("for model in models[1:]:", "for model in models[1:2]:")],
        [[("for model in models[1:]:", "for model in models[-1:]:")]],
    ),
    Mistake(
        5,
        "mean-of-weights",
        "All models have the mean of the weights. Random weights that are averaged are smaller\n"
        "than they were drawn: give all those of models[0].",
        [
            (
                _LOAD,
                "states = [model.state_dict() for model in models]\n"
                "    mean = {k: sum(s[k] for s in states) / len(states) for k in states[0]}\n"
                "    mean = {k: v.astype(states[0][k].dtype) for k, v in mean.items()}\n"
                "    for model in models:\n"
                "        model.load_state_dict(mean)",
            )
        ],
    ),
    Mistake(
        6,
        "mean-of-means-in-step",
        "Every worker counts alike in your step, also one with fewer samples: combine them by\n"
        "the sizes of their shards.",
        [(_COMBINE, "together = combine(gradients, [1] * len(models))")],
    ),
    Mistake(
        6,
        "sum-in-step",
        "You add up gradients that are means: your step is several times too large. Weigh each\n"
        "by its share of the samples.",
        [(_COMBINE, "together = [sum(each) for each in zip(*gradients, strict=True)]")],
    ),
    Mistake(
        6,
        "own-gradient",
        "Each model is updated with the gradient of its own shard: after one step they are no\n"
        "longer alike. All make the update of the whole batch.",
        [
            (
                _UPDATE,
                "for model, own in zip(models, gradients, strict=True):\n"
                "        for p, gradient in zip(model.parameters(), own, strict=True):\n"
                "            p.value -= lr * gradient",
            )
        ],
    ),
    Mistake(
        6,
        "rank-0-alone",
        "One model is updated and the others stay behind. All make the same update.",
        [("for model in models:", "for model in models[:1]:")],
        [[("for model in models:", "for model in models[-1:]:")]],
    ),
    Mistake(
        6,
        "whole-batch-on-each",
        "Each worker computes the whole batch: the numbers are right, and nothing was gained.\n"
        "A worker takes its shard.",
        [(_LOSS, "tg.mse_loss(model(x), y).backward()")],
    ),
    Mistake(
        6,
        "same-shard-in-step",
        "All workers compute the same shard, and the rest of the batch is never looked at.",
        [
            (_LOSS, "tg.mse_loss(model(x[slice(*bounds[0])]), y[slice(*bounds[0])]).backward()"),
        ],
    ),
    Mistake(
        6,
        "labels-of-others",
        "x is cut into shards and y is not: these samples are compared with what belongs to the\n"
        "first ones.",
        [(_LOSS, "tg.mse_loss(model(x[begin:end]), y[: end - begin]).backward()")],
    ),
    Mistake(
        6,
        "gradients-pile-up",
        "In the second step the gradient of the first one is still there: backward adds. Set it\n"
        "back with zero_grad() before.",
        [("model.zero_grad()\n", "pass\n")],
    ),
    Mistake(
        6,
        "one-update-for-each-shard",
        "You make an update after the gradient of each shard, several small steps in the place\n"
        "of one, and the workers would wait for each other. First all gradients, then one update.",
        [
            (
                "        gradients.append([p.grad for p in model.parameters()])\n    " + _COMBINE,
                "        gradients.append([p.grad.copy() for p in model.parameters()])\n"
                "        for other in models:\n"
                "            for p, g in zip(other.parameters(), gradients[-1], strict=True):\n"
                "                p.value -= lr * (end - begin) / len(x) * g\n"
                "    together = [0 * g for g in gradients[0]]",
            )
        ],
        [
            [
                (
                    "        gradients.append([p.grad for p in model.parameters()])\n    "
                    + _COMBINE,
                    "        gradients.append([p.grad.copy() for p in model.parameters()])\n"
                    "        for other in models:\n"
                    "            for p, g in zip(other.parameters(), gradients[-1], strict=True):\n"
                    "                p.value -= lr * g\n"
                    "    together = [0 * g for g in gradients[0]]",
                )
            ]
        ],
    ),
    Mistake(
        6,
        "uphill",
        "The update goes up the gradient: the loss grows. Take lr * gradient off.",
        [("p.value -= lr * gradient", "p.value += lr * gradient")],
    ),
    Mistake(
        6,
        "divided-by-workers-again",
        "You divide by the number of workers once more: the combined gradient is that of the\n"
        "batch already.",
        [("p.value -= lr * gradient", "p.value -= lr * gradient / len(models)")],
    ),
    Mistake(
        6,
        "update-for-each-worker",
        "All models make the update as many times as there are workers. Each makes it once.",
        [("p.value -= lr * gradient", "p.value -= lr * gradient * len(models)")],
    ),
]
