"""Programs for PyTorch, run unchanged."""
