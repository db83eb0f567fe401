"""Exercise 16: what two projects stand on.  Pictures are arrays of numbers from 0 to 1.

    rgb       (3, H, W): red, green, blue               y   (H, W): luma, the brightness

    luma      Y = (16 + 65.481 R + 128.553 G + 24.966 B) / 255          ITU-R BT.601
    psnr      10 log10(1 / mean of (y - luma(rgb))**2)                  decibel
"""

import numpy as np

import tinygraph as tg


def luma(rgb):
    """Step 1: the luma (H, W) of a picture (3, H, W), float64: black 16/255, white 235/255."""
    # BEGIN SOLUTION 1: a sum over the three colours, each with its weight, and an offset
    weights = np.array([65.481, 128.553, 24.966])
    return (16 + np.tensordot(weights, rgb, 1)) / 255
    # END SOLUTION


def psnr(y, rgb, border):
    """Step 2: how near luma y (H, W) comes to the picture rgb (3, H, W), in decibel, as a float.

    `border` pixels are left out at each of the four edges; it may be 0.  Nothing is rounded.
    """
    # BEGIN SOLUTION 2: the mean of the squared differences from the picture's luma, inside
    inner = (slice(border, n - border) for n in y.shape)
    error = np.mean((y - luma(rgb))[tuple(inner)] ** 2)
    return float(10 * np.log10(1 / error))
    # END SOLUTION


def crops(low, high, size, stride, margin):
    """Step 3: what the network learns from, two arrays: inputs (N, 1, size, size), and targets.

    low, high         luma (H, W) of one picture, without and with its details
    inputs            windows of `low`, row by row, that begin at multiples of the stride
    targets           of `high` the middle of each window, without `margin` pixels at each edge

    Windows lie inside the picture.  The dtype is that of the picture.
    """
    # BEGIN SOLUTION 3: one loop over the places; both are cut at the same ones
    inputs, targets = [], []
    for top in range(0, low.shape[0] - size + 1, stride):
        for left in range(0, low.shape[1] - size + 1, stride):
            window = slice(top, top + size), slice(left, left + size)
            middle = (
                slice(top + margin, top + size - margin),
                slice(left + margin, left + size - margin),
            )
            inputs.append(low[window])
            targets.append(high[middle])
    return np.stack(inputs)[:, None], np.stack(targets)[:, None]
    # END SOLUTION


class SRCNN(tg.nn.Module):
    """Step 4: x (N, 1, H, W) to (N, 1, H - 12, W - 12): three convolutions, nothing is padded.

    conv1     n1 filters of 9 x 9, then ReLU
    conv2     n2 filters of 1 x 1, then ReLU
    conv3     one filter of 5 x 5
    """

    def __init__(self, n1, n2):
        # BEGIN SOLUTION 4: tg.nn.Conv2d(channels in, channels out, size), by the names above
        super().__init__()
        self.conv1 = tg.nn.Conv2d(1, n1, 9)
        self.conv2 = tg.nn.Conv2d(n1, n2, 1)
        self.conv3 = tg.nn.Conv2d(n2, 1, 5)
        # END SOLUTION

    def forward(self, x):
        # BEGIN SOLUTION 4: luma may have to become darker: what stands at the end?
        h = tg.relu(self.conv1(x))
        return self.conv3(tg.relu(self.conv2(h)))
        # END SOLUTION


def experiment(pictures, test, held, epochs, seed, train, measure):
    """Step 5: (epoch, quality): the best epoch, counted from 1, and what its network has on `test`.

    pictures, test               two lists of pictures
    held                         how many of `pictures`, drawn with the seed, are for validation
    train(some)                  an epoch on some pictures: gives the parameters after it
    measure(parameters, some)    the quality on some pictures; larger is better

    No picture is for two things.  The test is measured once; of equal epochs the first is best.
    """
    # BEGIN SOLUTION 5: what may the choice of the epoch have seen?
    order = np.random.default_rng(seed).permutation(len(pictures))
    validation = [pictures[i] for i in order[:held]]
    training = [pictures[i] for i in order[held:]]
    best, kept, found = 0, None, -np.inf
    for epoch in range(1, epochs + 1):
        parameters = train(training)
        quality = measure(parameters, validation)
        if quality > found:
            best, kept, found = epoch, parameters, quality
    return best, measure(kept, test)
    # END SOLUTION


def timed(run, repeats, clock):
    """Step 6: the median of the seconds of `repeats` runs, after one that is not counted.

    run() does the work once; clock() gives the time in seconds, as time.perf_counter does.
    """
    # BEGIN SOLUTION 6: the first run compiles and fills caches
    run()
    seconds = []
    for _ in range(repeats):
        begun = clock()
        run()
        seconds.append(clock() - begun)
    return float(np.median(seconds))
    # END SOLUTION
