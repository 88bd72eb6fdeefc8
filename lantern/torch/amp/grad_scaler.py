"""Losses that are scaled, so that gradients of half precision do not vanish.

The scale grows while all gradients are finite. A step whose gradients are not is left
out, and the scale shrinks: so a training goes on where one loss overflowed.
"""

import warnings
from collections import abc, defaultdict
from enum import Enum
from inspect import signature
from typing import Any

from lantern.eager.grad_mode import no_grad
from lantern.errors import EagerError, OptionError
from lantern.torch.functions.creation import as_tensor, full
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.tensor import Tensor

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """What has been done to the gradients of an optimiser since the last ``update``."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """What is known of an optimiser of which nothing has been asked."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _amp_foreach_non_finite_check_and_unscale_(
    grads: Any, found_inf: Tensor, inv_scale: Tensor
) -> None:
    """Multiply gradients by a number, in place; ``found_inf`` is 1 if one is infinite.

    Example:
        >>> import lantern.torch as torch
        >>> grads, found, by = [torch.ones(2)], torch.zeros(1), torch.full((1,), 0.5)
        >>> torch._amp_foreach_non_finite_check_and_unscale_(grads, found, by)
        >>> grads, found
        ([tensor([0.5000, 0.5000])], tensor([0.]))
    """
    by = inv_scale.item()
    with no_grad():
        for x in grads:
            if not x.isfinite().all():
                found_inf.fill_(1.0)
            if dtypes.is_half(x.primal.dtype):  # of which the number may be too small
                x.copy_(x.float() * by)
            else:
                x.mul_(by)


def _amp_update_scale_(
    scale: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    growth_factor: float,
    backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Make a scale less after an infinite gradient, more after enough finite ones.

    Example:
        >>> import lantern.torch as torch
        >>> scale, tracker = torch.full((1,), 4.0), torch.zeros(1, dtype=torch.int32)
        >>> torch._amp_update_scale_(scale, tracker, torch.ones(1), 2.0, 0.5, 10)
        tensor([2.])
    """
    if found_inf.item():
        growth_tracker.zero_()
        return scale.mul_(backoff_factor)
    if growth_tracker.item() + 1 < growth_interval:
        growth_tracker.add_(1)
        return scale
    growth_tracker.zero_()
    grown = scale * growth_factor
    return scale.copy_(grown) if grown.isfinite().all() else scale


class GradScaler:
    """Scales losses, and takes the steps of optimisers whose gradients are finite.

    On a device that is not there it is disabled: losses stay as they are.

    Args:
        device: the device of the losses.
        init_scale: the factor to begin with.
        growth_factor: what it is multiplied by after enough finite steps.
        backoff_factor: what it is multiplied by after an infinite one.
        growth_interval: how many are enough.
        enabled: whether losses are scaled.

    Example:
        >>> import lantern.torch as torch
        >>> w = torch.nn.Parameter(torch.ones(1))
        >>> optimizer = torch.optim.SGD([w], lr=0.5)
        >>> scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale((w * w).sum()).backward()
        >>> w.grad
        tensor([16.])
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> w.item()
        0.0
    """

    def __init__(
        self,
        device: Any = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        from lantern.torch import cuda

        self._device = dtypes.device(device).type
        if enabled and self._device == "cuda" and not cuda.is_available():
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  "
                "Disabling.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        if enabled and not growth_factor > 1.0:
            raise OptionError("GradScaler: the growth factor must be > 1.0.")
        if enabled and not backoff_factor < 1.0:
            raise OptionError("GradScaler: the backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._scale: Any = None  # tensors, from the first loss on
        self._growth_tracker: Any = None
        self._per_optimizer_states: Any = defaultdict(_refresh_per_optimizer_state)

    def _begun(self, where: str) -> Any:
        """The scale, which is there after the first loss."""
        if self._scale is None:
            raise EagerError(
                f"{where}: no loss has been scaled. Call scaler.scale(loss) first."
            )
        return self._scale

    def _begin(self, device: Any) -> None:
        self._scale = full((1,), self._init_scale, dtype=dtypes.float32, device=device)
        self._growth_tracker = full(
            (1,), self._init_growth_tracker, dtype=dtypes.int32, device=device
        )

    # --- losses and gradients ---------------------------------------------------------

    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._begin(outputs.device)
            return outputs * self._scale.to(outputs.device).squeeze(0)
        if not isinstance(outputs, abc.Iterable):
            raise OptionError("outputs must be a Tensor or an iterable of Tensors")
        scaled = map(self.scale, outputs)
        if not isinstance(outputs, list | tuple):
            return scaled
        rows = hasattr(outputs, "_fields")
        return type(outputs)(*scaled) if rows else type(outputs)(scaled)

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Unscale all gradients of an optimiser; by device, whether one is infinite."""
        grads = defaultdict(list)
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not allow_fp16 and p.grad.dtype == dtypes.float16:
                    raise OptionError("Attempting to unscale FP16 gradients.")
                grads[p.grad.device].append(p.grad)
        found = {}
        for device, some in grads.items():
            found[device] = found_inf.to(device, copy=True)
            _amp_foreach_non_finite_check_and_unscale_(some, found[device], inv_scale)
        return found

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimiser by the scale, to clip them, say."""
        if not self._enabled:
            return
        scale = self._begun("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise EagerError(
                "unscale_() has already been called on this optimizer since the last "
                "update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise EagerError("unscale_() is being called after step().")
        by = scale.double().reciprocal().float()
        found = full((1,), 0.0, dtype=dtypes.float32, device=scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(
            optimizer, by, found, False
        )
        state["stage"] = OptState.UNSCALED

    # --- steps ------------------------------------------------------------------------

    def step(self, optimizer: Any, *args: Any, **options: Any) -> Any:
        """A step of the optimiser, unless a gradient is infinite or nan."""
        if not self._enabled:
            return optimizer.step(*args, **options)
        if "closure" in options:
            raise EagerError("GradScaler.step: closures are not possible with scaling.")
        self._begun("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise EagerError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            done = self._step_of_its_own(optimizer, state, args, options)
            state["stage"] = OptState.STEPPED
            return done
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = state["found_inf_per_device"]
        if not found:
            raise EagerError("No inf checks were recorded for this optimizer.")
        done = None
        if not any(x.item() for x in found.values()):
            done = optimizer.step(*args, **options)
        state["stage"] = OptState.STEPPED
        return done

    def _step_of_its_own(
        self, optimizer: Any, state: Any, args: Any, options: Any
    ) -> Any:
        """A step of an optimiser that unscales and checks by itself."""
        if "grad_scaler" in signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to "
                "the passed optimizer. In the near future GradScaler registers "
                "`grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **options, grad_scaler=self)
        unscaled = state["stage"] is OptState.UNSCALED
        if not unscaled:
            self._check_inf_per_device(optimizer)
        found = [
            x.to(self._scale.device) for x in state["found_inf_per_device"].values()
        ]
        optimizer.grad_scale = None if unscaled else self._scale
        optimizer.found_inf = sum(found[1:], found[0])
        try:
            return optimizer.step(*args, **options)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """Note which gradients are infinite, and leave them as they are."""
        one = full((1,), 1.0, dtype=dtypes.float32, device=self._scale.device)
        state = self._per_optimizer_states[id(optimizer)]
        found: dict[Any, Tensor] = self._unscale_grads_(optimizer, one, one * 0, True)
        state["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """By device, whether a gradient was infinite."""
        found: dict[Any, Tensor] = self._per_optimizer_states[id(optimizer)][
            "found_inf_per_device"
        ]
        return found

    def update(self, new_scale: Any = None) -> None:
        """Change the scale as the last steps have it, or set it."""
        if not self._enabled:
            return
        scale = self._begun("update")
        if new_scale is not None:
            scale.copy_(as_tensor(new_scale))
        else:
            found = [
                x.to(scale.device)
                for state in self._per_optimizer_states.values()
                for x in state["found_inf_per_device"].values()
            ]
            if not found:
                raise EagerError("No inf checks were recorded prior to update.")
            _amp_update_scale_(
                scale,
                self._growth_tracker,
                sum(found[1:], found[0]),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    # --- numbers ----------------------------------------------------------------------

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale; 1 if it is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_growth_tracker(self) -> int:
        """How many steps in a row were finite."""
        if self._growth_tracker is None:
            return self._init_growth_tracker
        return int(self._growth_tracker.item())

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after enough finite steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose that."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after an infinite step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose that."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many finite steps are enough."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose that."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """The numbers, for a file; none if it is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the numbers of another one."""
        if not self._enabled:
            return
        if not state_dict:
            raise EagerError(
                "The source state dict is empty, possibly because it was saved from a "
                "disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._begin(self._scale.device)

    def __getstate__(self) -> dict[str, Any]:
        if self._enabled and self._per_optimizer_states:
            raise EagerError(
                "A GradScaler instance may only be pickled at the beginning of an "
                "iteration, or at the end after scaler.update()."
            )
        begun = {"_init_scale": self.get_scale()} if self._enabled else {}
        tracked = {"_init_growth_tracker": self._get_growth_tracker()}
        cleared = {"_scale": None, "_growth_tracker": None}
        return self.__dict__ | begun | tracked | cleared
