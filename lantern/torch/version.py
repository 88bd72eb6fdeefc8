"""The version of PyTorch that the names are of: ``torch.version``."""

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

__version__ = "2.13.0+lantern"
cuda = hip = xpu = None  # GPUs are CuPy's business
debug = False
git_version = "Unknown"
