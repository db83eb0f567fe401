"""What needs PyTorch is no test."""

collect_ignore_glob = ["pytorch/*", "make.py"]
