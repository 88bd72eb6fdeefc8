"""PyTorch's own files, read and written without trust: see ``README.md``."""
