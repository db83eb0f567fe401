"""The scripts that made the expected values need PyTorch: they are not collected."""

collect_ignore_glob = ["data/make_*.py"]
