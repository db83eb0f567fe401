"""`make bench`: training steps on a CPU beside whatever peers are installed, on one page.

    python -m benchmarks.cpu [--quick] [--peers "torch jax ..."] [--only w1 ...] [--output FOLDER]

Four workloads, float32, each a full training step (forward, backward, SGD update):

    w1:N:D    N images of 28x28; conv 3x3 with D filters, ReLU, max-pool 2, linear, cross-entropy
    w2        MLP 784-512-512-10, batch 128
    w3        VGG-like network on 64 images of 3x32x32
    w4        MLP 2-8-1, mean squared error, batch 4: nothing but overhead per node

A side is one way of taking the step: tinygraph eager and compiled, PyTorch in several ways, JAX,
tinygrad, MyGrad, DeZero.  Each side runs in a process of its own, a peer in an environment of its
own; all start from the same weights and must agree on the losses of three steps before anything is
timed.  Then bursts of steps take turns.  Figures are medians of ratios, with the smallest and the
largest, and the peak memory of each process.  A peer that is absent or fails is named with the
reason and left out; the others go on.
"""
