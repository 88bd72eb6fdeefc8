"""The version of PyTorch that the names are of: ``torch.version``."""

from lantern.torch.torch_version import TorchVersion

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

__version__ = TorchVersion("2.13.0+lantern")
cuda = hip = xpu = None  # GPUs are CuPy's business
debug = False
git_version = "Unknown"
