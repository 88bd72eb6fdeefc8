"""An optimiser of which each process keeps the state of some parameters only."""

from collections.abc import Callable
from functools import partial
from typing import Any

from lantern.errors import ArgumentError, EagerError
from lantern.torch.distributed import objects
from lantern.torch.distributed.algorithms.join import Joinable, JoinHook
from lantern.torch.distributed.collectives import _in_place, array_of
from lantern.torch.distributed.groups import default
from lantern.torch.optim.optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimiser whose state is shared out: each process moves its parameters.

    Args:
        params: parameters, or groups of them.
        optimizer_class: what moves them.
        process_group: which processes.
        parameters_as_bucket_view: has no effect.
        overlap_with_ddp: has no effect.
        defaults: the options of ``optimizer_class``.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> w = torch.ones(2, requires_grad=True)
        >>> zero = dist.optim.ZeroRedundancyOptimizer([w], torch.optim.SGD, lr=0.5)
        >>> w.sum().backward()
        >>> _ = zero.step()
        >>> w
        tensor([0.5000, 0.5000], requires_grad=True)
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: Callable[..., Any],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        params = list(params)
        if not params:
            raise ArgumentError(
                "params argument given to the optimizer should be a non-empty iterable"
            )
        Joinable.__init__(self)
        self.process_group = default() if process_group is None else process_group
        self.optimizer_class, self.options = optimizer_class, defaults
        Optimizer.__init__(self, params, dict(defaults))
        self._share_out()
        self._everything: list[Any] | None = None

    def _share_out(self) -> None:
        """Say whose each parameter is; the largest first, to who has least."""
        n, rank = self.process_group.size(), self.process_group.rank()
        load, self.owner = [0] * n, dict[int, int]()
        parameters = [p for group in self.param_groups for p in group["params"]]
        for p in sorted(parameters, key=lambda p: -p.numel()):
            whose = load.index(min(load))
            self.owner[id(p)] = whose
            load[whose] += p.numel()
        self.parameters = parameters
        groups = [
            {
                **{k: v for k, v in group.items() if k != "params"},
                "params": [p for p in group["params"] if self.owner[id(p)] == rank],
            }
            for group in self.param_groups
        ]
        if any(group["params"] for group in groups):
            self.optim = self.optimizer_class(groups, **self.options)
        else:
            self.optim = None

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Move some more parameters."""
        Optimizer.add_param_group(self, param_group)
        if hasattr(self, "optim"):
            self._share_out()

    def step(self, closure: Any = None, **more: Any) -> Any:
        """Move this process's parameters, and get the others' from the others."""
        loss = None
        if self.optim is not None:
            for mine, group in zip(
                self.optim.param_groups, self.param_groups, strict=True
            ):  # schedules change our groups, and see what has become of theirs
                mine.update({k: v for k, v in group.items() if k != "params"})
            loss = self.optim.step(closure) if closure else self.optim.step()
        elif closure is not None:
            loss = closure()
        self._exchange()
        return loss

    def _exchange(self) -> None:
        engine = self.process_group.engine
        for p in self.parameters:
            root = self.owner[id(p)]
            _in_place(engine, array_of(p), partial(engine.broadcast, root=root))

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the whole state at one process, for ``state_dict`` there."""
        names = {id(p): i for i, p in enumerate(self.parameters)}
        mine = {}
        if self.optim is not None:
            mine = {names[id(p)]: s for p, s in self.optim.state.items()}
        parts = objects._gathered(self.process_group.engine, mine)
        self._everything = parts if self.process_group.rank() == to else None

    def state_dict(self) -> dict[str, Any]:
        """The whole state, which was gathered before."""
        if self._everything is None:
            raise EagerError(
                f"Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.process_group.rank()})` on all "
                f"ranks beforehand if you meant to save the global state."
            )
        state: dict[int, Any] = {}
        for part in self._everything:
            state.update(part)
        groups, n = [], 0
        for group in self.param_groups:
            places = list(range(n, n + len(group["params"])))
            n += len(places)
            rest = {k: v for k, v in group.items() if k != "params"}
            groups.append({**rest, "params": places})
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this process's part of a whole state."""
        for group, saved in zip(
            self.param_groups, state_dict["param_groups"], strict=True
        ):
            group.update({k: v for k, v in saved.items() if k != "params"})
        if self.optim is None:
            return
        names = {id(p): i for i, p in enumerate(self.parameters)}
        mine = [p for group in self.optim.param_groups for p in group["params"]]
        places = {names[id(p)]: i for i, p in enumerate(mine)}
        state = state_dict["state"].items()
        own = self.optim.state_dict()
        own["state"] = {places[int(k)]: v for k, v in state if int(k) in places}
        for group, saved in zip(
            own["param_groups"], state_dict["param_groups"], strict=True
        ):
            group.update({k: v for k, v in saved.items() if k != "params"})
        self.optim.load_state_dict(own)

    def join_hook(self, **options: Any) -> JoinHook:
        """What this process does for the others, once it has no more data."""
        return _Hook(self)

    @property
    def join_device(self) -> str:
        """Where the numbers lie that say who still has data."""
        return "cpu"

    @property
    def join_process_group(self) -> Any:
        """Whose processes those are."""
        return self.process_group


class _Hook(JoinHook):
    """An optimiser's steps go on as long as any process has data."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        """Take a step, so that this process's parameters move as well."""
        self.zero.step()
