"""Libraries behind PyTorch that programs set flags of: of these, oneDNN may be here."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from lantern import engines
from lantern.engines.gpu import cudnn as gpu
from lantern.torch import cuda as torch_cuda

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


class Library(ModuleType):
    """A library that is not here: flags may be set, and change nothing."""

    def __init__(self, name: str, **flags: Any) -> None:
        super().__init__(f"{__name__}.{name}")
        self.__dict__.update(flags)
        sys.modules[self.__name__] = self

    def is_available(self) -> bool:
        """Whether it is here: no."""
        return False

    def is_built(self) -> bool:
        """Whether it can be here: no."""
        return False

    def version(self) -> Any:
        """Its version: None."""
        return None

    def flags(self, **flags: Any) -> Any:
        """A block in which flags are set."""
        return _nothing()


@contextmanager
def _nothing() -> Iterator[None]:
    """A block without effect, also as a decorator."""
    yield


class _CuDNN(Library):
    """cuDNN, which computes convolutions and more on a GPU where it is installed."""

    def is_available(self) -> bool:
        """Whether it is installed, and there is a GPU."""
        return torch_cuda.is_available() and gpu.is_installed()

    def version(self) -> Any:
        """Its version as one number; None where it is not installed."""
        return gpu.version() if self.is_available() else None

    @property
    def enabled(self) -> bool:
        """Whether it computes where it is installed; may be set."""
        return gpu.is_wanted()

    @enabled.setter
    def enabled(self, on: bool) -> None:
        gpu.switch(on)

    @property
    def allow_tf32(self) -> bool:
        """Whether convolutions may multiply numbers of 11 binary digits; may be set."""
        return gpu.allows_tf32()

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        gpu.allow_tf32(allowed)

    @contextmanager
    def flags(self, **flags: Any) -> Iterator[None]:
        """A block in which flags are set."""
        before = {name: getattr(self, name, None) for name in flags}
        try:
            for name, value in flags.items():
                setattr(self, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)


class _Products(Library):
    """How products are computed on a GPU."""


class _OneDNN(Library):
    """oneDNN, which computes convolutions where it is installed."""

    def is_available(self) -> bool:
        """Whether it is installed, and has not been switched off."""
        return engines.in_use() is not None

    @property
    def enabled(self) -> bool:
        """Whether it computes; may be set."""
        return self.is_available()

    @enabled.setter
    def enabled(self, on: bool) -> None:
        engines.switch(on)

    def version(self) -> Any:
        """Its name and version; None where it does not compute."""
        return engines.in_use()

    def flags(self, enabled: bool = False, **flags: Any) -> Any:
        """A block in which it computes, or does not."""
        return engines.switched(enabled)


class _Cuda(Library):
    """CUDA: flags of products, and of attention."""

    def sdp_kernel(self, **flags: Any) -> Any:
        """A block in which ways of computing attention are chosen."""
        return _nothing()

    def flash_sdp_enabled(self) -> bool:
        """Whether a fused attention is used: no."""
        return False

    mem_efficient_sdp_enabled = flash_sdp_enabled

    def math_sdp_enabled(self) -> bool:
        """Whether attention is computed step by step: yes."""
        return True

    def enable_flash_sdp(self, enabled: bool) -> None:
        """Has no effect: attention is computed step by step."""

    enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = enable_flash_sdp


__path__: list[str] = []
_matmul = {
    "allow_tf32": False,
    "allow_fp16_reduced_precision_reduction": True,
    "allow_bf16_reduced_precision_reduction": True,
    "fp32_precision": "ieee",
}
cudnn = _CuDNN("cudnn", benchmark=False, deterministic=False, benchmark_limit=10)
cuda = _Cuda("cuda", matmul=_Products("cuda.matmul", **_matmul))
mps, mkl, mkldnn = Library("mps"), Library("mkl"), _OneDNN("mkldnn")
openmp, opt_einsum = Library("openmp"), Library("opt_einsum", enabled=False)
cpu = Library("cpu", get_cpu_capability=lambda: "NO AVX")
