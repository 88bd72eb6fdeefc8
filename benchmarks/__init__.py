"""Speed and memory of Lantern beside its peers: ``python -m benchmarks``."""
