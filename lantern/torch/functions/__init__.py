"""The functions of the PyTorch-compatible API."""
