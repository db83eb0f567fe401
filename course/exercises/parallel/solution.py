"""Exercise 15: workers that share a batch, and make one step together.

    W         how many workers there are; they have the ranks 0 to W - 1
    n_w       samples of worker w, its shard; n of all of them
    g_w       the mean gradient of its samples

    g         = sum of n_w * g_w / n                                        combine
    mean      = sum of n_w * mean_w / n                                     moments
    variance  = sum of n_w * (var_w + (mean_w - mean)**2) / n
"""

import numpy as np

import tinygraph as tg


def shard(n, workers):
    """Step 1: a pair (begin, end) for each worker: it has the samples begin to end - 1 of n.

    In order, none left out; no two sizes differ by more than 1, and the larger ones come first.
    """
    # BEGIN SOLUTION 1: divmod gives how many each one has, and how many are left over
    size, more = divmod(n, workers)
    begins = [w * size + min(w, more) for w in range(workers + 1)]
    return [(begins[w], begins[w + 1]) for w in range(workers)]
    # END SOLUTION


def combine(gradients, sizes):
    """Step 2: the mean gradient of all samples, a list of arrays, one for each parameter.

    gradients[w] is such a list too: the mean gradient of the sizes[w] samples of worker w, of which
    there is at least one, here and in step 3.
    """
    # BEGIN SOLUTION 2: a mean counts as often as there are samples in it
    total = sum(sizes)
    means = []
    for of_workers in zip(*gradients, strict=True):  # one parameter
        weighed = [n / total * g for n, g in zip(sizes, of_workers, strict=True)]
        means.append(np.sum(weighed, axis=0))
    return means
    # END SOLUTION


def moments(means, variances, sizes):
    """Step 3: mean and variance over all samples, two arrays (C,), for batch normalisation.

    means[w] and variances[w], arrays (C,), are those over the sizes[w] samples of worker w.
    A variance is the mean of the squared distances from the mean: it divides by n.
    """
    # BEGIN SOLUTION 3: seen from the mean of all, a shard has a distance of its own besides
    (mean,) = combine([[m] for m in means], sizes)
    spread = [[v + (m - mean) ** 2] for m, v in zip(means, variances, strict=True)]
    (variance,) = combine(spread, sizes)
    return mean, variance
    # END SOLUTION


def ring(parts, rank, send, receive):
    """Step 4: the sum over all workers, a list of W arrays; it runs on every worker.

    parts             W arrays: the gradient of this worker, cut into one part for each worker
    rank              which worker this is
    send(to, array)   puts a copy of the array into the mailbox of worker `to`, and goes on at once
    receive(sender)   takes the next array from that worker; waits until there is one
    receive()         takes what has arrived first, whoever sent it: in a ring one worker alone

    Each sends to the worker rank + 1 alone, the last one to 0: 2 (W - 1) messages of one part.
    Afterwards all have the same sums, to the last bit.  `parts` is yours: change it, or return it.
    """
    # BEGIN SOLUTION 4: W - 1 rounds that add, W - 1 that hand round; who has which part when?
    W, parts = len(parts), list(parts)
    left, right = (rank - 1) % W, (rank + 1) % W
    for t in range(W - 1):
        send(right, parts[(rank - t) % W])
        k = (rank - t - 1) % W
        parts[k] = parts[k] + receive(left)
    for t in range(W - 1):  # part rank + 1 is whole now
        send(right, parts[(rank + 1 - t) % W])
        parts[(rank - t) % W] = receive(left)
    return parts
    # END SOLUTION


def broadcast(models):
    """Step 5: give all models the parameters and buffers of models[0], each a copy of its own.

    A model has state_dict() and load_state_dict(state), which copies; parameters() and buffers()
    give tensors, whose numbers are in the array `value`.
    """
    # BEGIN SOLUTION 5: they begin alike and get the same updates: that keeps them alike
    for model in models[1:]:
        model.load_state_dict(models[0].state_dict())
    # END SOLUTION


def step(models, x, y, lr):
    """Step 6: one step of gradient descent with the batch x (n, I), y (n, O); one model a worker.

    n is at least the number of models.
    Each worker computes with its own model and its own shard; the loss is tg.mse_loss, a mean.
    Then all make the same update, that of the whole batch: value -= lr * gradient.
    The grad of a parameter is an array; zero_grad() of a model makes it None, and does not touch an
    array that you have kept.
    """
    # BEGIN SOLUTION 6: first all gradients, then what they are together, then all updates
    bounds = shard(len(x), len(models))
    gradients = []
    for model, (begin, end) in zip(models, bounds, strict=True):
        model.zero_grad()
        tg.mse_loss(model(x[begin:end]), y[begin:end]).backward()
        gradients.append([p.grad for p in model.parameters()])
    together = combine(gradients, [end - begin for begin, end in bounds])
    for model in models:
        for p, gradient in zip(model.parameters(), together, strict=True):
            p.value -= lr * gradient
    # END SOLUTION
