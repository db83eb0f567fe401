"""Who observes a run: costs, the table of kernels, anomalies, a stopwatch."""
