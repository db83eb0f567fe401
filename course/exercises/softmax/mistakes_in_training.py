"""What goes wrong in steps 5 and 6 of exercise 6, where a model is trained and judged."""

from tinygraph_course.content.exercise import Mistake

_EACH = "for x, labels in batches:\n        "
_ZERO = "optimizer.zero_grad()\n        "
_OF_LOSS = "loss = SoftmaxCrossEntropy()(model(x), labels)\n        "
_BACK = "loss.backward()\n        "
_STEP = "optimizer.step()\n        "
_NOTE = "losses.append(loss.item())\n    "
_RETURN = "return losses"
_BODY = f"{_ZERO}{_OF_LOSS}{_BACK}{_STEP}{_NOTE}"
_EPOCHS = "for _ in range(epochs):\n        train(model, batches, optimizer)\n    "
_TEST = "x, labels = test\n    "
_WITH = "with tg.no_grad():\n        logits = model(x).numpy()\n    "
_SHARE = "return float((logits.argmax(axis=1) == labels).mean())"
_ALL = "x, labels = (np.concatenate(some) for some in zip(*batches))\n    "


def _body(*lines: str) -> tuple[str, str]:
    """An edit of the loop of `train`."""
    return _BODY, "".join(lines)


IN_TRAINING = [
    Mistake(
        5,
        "gradients-pile-up",
        "Gradients pile up: backward adds to those of the batches before. zero_grad takes them\n"
        "away, at every batch.",
        [_body(_OF_LOSS, _BACK, _STEP, _NOTE)],
    ),
    Mistake(
        5,
        "step-before-backward",
        "step stands between the forward and its backward, and moves the weights that backward\n"
        "has to know as they were. The order is loss, backward, step.",
        [_body(_ZERO, _OF_LOSS, _STEP, _BACK, _NOTE)],
    ),
    Mistake(
        5,
        "weights-stay",
        "The weights stay as they are: backward or step is not called, or there is no gradient\n"
        "when step is, since zero_grad stands between. It is zero_grad, backward, step.",
        [_body(_OF_LOSS, _BACK, _ZERO, _STEP, _NOTE)],
    ),
    Mistake(
        5,
        "a-batch-late",
        "Each step goes by the gradients of the batch before: step stands at the beginning. The\n"
        "order is loss, backward, step.",
        [_body(_STEP, _ZERO, _OF_LOSS, _BACK, _NOTE)],
        [[_body(_STEP, _OF_LOSS, _BACK, _NOTE)]],
    ),
    Mistake(
        5,
        "one-step-for-all",
        "There is one step, after the loop. The weights should move at every batch, and the next\n"
        "one be computed with the new ones.",
        [
            _body(_OF_LOSS, _BACK, _NOTE),
            (_RETURN, "optimizer.step()\n    return losses"),
        ],
        [[_body(_ZERO, _OF_LOSS, _BACK, _NOTE), (_RETURN, "optimizer.step()\n    return losses")]],
    ),
    Mistake(
        5,
        "first-batch-alone",
        "You return after the first batch: return stands inside of the loop.",
        [(_RETURN, "    return losses")],
    ),
    Mistake(
        5,
        "loss-after-the-step",
        "Your losses are those after the step, which takes another forward. The one that backward\n"
        "has begun with is wanted.",
        [_body(_ZERO, _OF_LOSS, _BACK, _STEP, _OF_LOSS, _NOTE)],
    ),
    Mistake(
        5,
        "one-number",
        "That is one number; of each batch the loss is wanted, in a list.",
        [(_RETURN, "return float(np.mean(losses))")],
        [[(_RETURN, "return sum(losses)")], [(_RETURN, "return losses[-1]")]],
    ),
    Mistake(
        5,
        "no-losses",
        "Nothing is returned: a list with the loss of each batch is wanted.",
        [(_RETURN, "return None")],
    ),
    Mistake(
        6,
        "scored-on-training-data",
        "That is the share of training samples. Those the network has seen; whether it reads\n"
        "others too, the test data say.",
        [(_TEST, _ALL)],
        [[(_TEST, "x, labels = batches[-1]\n    ")], [(_TEST, "x, labels = batches[0]\n    ")]],
    ),
    Mistake(
        6,
        "test-data-trained-on",
        "You train on the test data too. Then they do not say any more how it reads what it has\n"
        "not seen.",
        [(_EPOCHS, _EPOCHS.replace("batches", "[*batches, test]"))],
    ),
    Mistake(
        6,
        "best-epoch-by-test",
        "You give the best of all epochs. Which epoch is the best the test data may not choose:\n"
        "that makes them training data. The share after the last one is wanted.",
        [
            (
                f"{_EPOCHS}{_TEST}{_WITH}{_SHARE}",
                "best, (x, labels) = 0.0, test\n    for _ in range(epochs):\n"
                "        train(model, batches, optimizer)\n"
                "        right = model(x).numpy().argmax(axis=1) == labels\n"
                "        best = max(best, float(right.mean()))\n    return best",
            )
        ],
    ),
    Mistake(
        6,
        "one-epoch",
        "You train for one epoch, whatever `epochs` says.",
        [(_EPOCHS, "train(model, batches, optimizer)\n    ")],
    ),
    Mistake(
        6,
        "an-epoch-less",
        "You train for an epoch less than `epochs` says.",
        [(_EPOCHS, _EPOCHS.replace("range(epochs)", "range(1, epochs)"))],
    ),
    Mistake(
        6,
        "not-trained",
        "That is the share before the training: train first, and then ask the model.",
        [(_EPOCHS, "")],
    ),
    Mistake(
        6,
        "argmax-over-samples",
        "Your argmax goes over samples, or over the whole array. For each row the largest of its\n"
        "logits is wanted: axis=1.",
        [(_SHARE, _SHARE.replace("axis=1", "axis=0"))],
        [[(_SHARE, _SHARE.replace("axis=1", ""))]],
    ),
    Mistake(
        6,
        "counted",
        "You count the right ones; their share is wanted, from 0 to 1.",
        [(_SHARE, _SHARE.replace("mean()", "sum()"))],
        [[(_SHARE, _SHARE.replace("mean())", "mean() * 100)"))]],
    ),
    Mistake(
        6,
        "wrong-ones",
        "That is the share of wrong ones; 1 minus it is wanted.",
        [(_SHARE, _SHARE.replace("==", "!="))],
    ),
    Mistake(
        6,
        "smallest-logit",
        "You take the class with the smallest logit; the model means the largest.",
        [(_SHARE, _SHARE.replace("argmax", "argmin"))],
    ),
]
