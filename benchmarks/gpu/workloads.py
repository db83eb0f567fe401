"""The networks of the GPU page; they stand in benchmarks.workloads, which every page shares."""

from benchmarks.workloads import LEARNING_RATE, F, Layer, Workload, mlp, seed_network, vgg

__all__ = ["LEARNING_RATE", "F", "Layer", "Workload", "mlp", "seed_network", "vgg"]
