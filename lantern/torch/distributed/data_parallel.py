"""A model that several processes train, each on its part of the data."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lantern.eager.grad_mode import is_enabled
from lantern.errors import EagerError, OptionError
from lantern.torch.distributed.algorithms.join import Join, Joinable, JoinHook
from lantern.torch.distributed.collectives import _in_place, array_of
from lantern.torch.distributed.groups import default
from lantern.torch.distributed.reducer import Reducer
from lantern.torch.nn.module import Module

__all__ = ["DistributedDataParallel"]

_MEGABYTE = 1 << 20


class DistributedDataParallel(Module, Joinable):
    """A model whose gradients are the means over all processes.

    Args:
        module: the model; all processes begin with the parameters of the first.
        device_ids: None, or GPUs, of which there are none.
        output_device: as ``device_ids``.
        dim: has no effect.
        broadcast_buffers: whether the first process's buffers are everyone's.
        init_sync: whether parameters and buffers are compared and made equal.
        process_group: of which processes.
        bucket_cap_mb: the size of a bucket, in megabytes; the first is 1 at most.
        find_unused_parameters: whether a pass may leave parameters out.
        check_reduction: has no effect.
        gradient_as_bucket_view: whether gradients are parts of the buckets' memory.
        static_graph: as ``find_unused_parameters``.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> model = torch.nn.Linear(2, 1, bias=False)
        >>> parallel = torch.nn.parallel.DistributedDataParallel(model)
        >>> parallel(torch.ones(1, 2)).sum().backward()
        >>> model.weight.grad
        tensor([[1., 1.]])
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        **more: Any,
    ) -> None:
        Module.__init__(self)
        Joinable.__init__(self)
        self.process_group = default() if process_group is None else process_group
        if device_ids or output_device is not None:
            raise OptionError(
                "DistributedDataParallel device_ids and output_device arguments only "
                "work with single-device/multiple-device GPU modules or CPU modules, "
                f"but got device_ids {device_ids}, output_device {output_device}, and "
                f"module parameters {{device(type='cpu')}}."
            )
        ignored = getattr(module, "_ddp_params_and_buffers_to_ignore", ())
        self.parameters_to_ignore = set(ignored)
        self.module, self.dim, self.device_ids = module, dim, None
        self.output_device, self.device, self.device_type = None, "cpu", "cpu"
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.divide_by_initial_world_size = True
        cap = 25 if bucket_cap_mb is None else bucket_cap_mb
        self.bucket_bytes_cap = int(cap * _MEGABYTE)
        if not self._trained():
            raise EagerError(
                "DistributedDataParallel is not needed when a module doesn't have any "
                "parameters that require a gradient."
            )
        if init_sync:
            self._compare()
            self._share(self._state())
        self._begin()

    def _begin(self) -> None:
        sizes = min(_MEGABYTE, self.bucket_bytes_cap), self.bucket_bytes_cap
        self.reducer = Reducer(
            self._trained(),
            self.process_group,
            sizes,
            self.find_unused_parameters or self.static_graph,
            self.gradient_as_bucket_view,
        )

    def _named(self) -> dict[str, Any]:
        """The parameters that are shared."""
        pairs = self.module.named_parameters()
        return {k: p for k, p in pairs if k not in self.parameters_to_ignore}

    def _trained(self) -> list[Any]:
        return [p for p in self._named().values() if p.requires_grad]

    def _buffers_shared(self) -> list[Any]:
        pairs = self.module.named_buffers()
        return [b for k, b in pairs if k not in self.parameters_to_ignore]

    def _state(self) -> list[Any]:
        return [*self._named().values(), *self._buffers_shared()]

    def _compare(self) -> None:
        """Raise unless all processes have parameters of the same shapes."""
        engine = self.process_group.engine
        shapes = [tuple(p.shape) for p in self._trained()]
        counts = np.empty(engine.size, np.int64)
        engine.all_gather(np.array(len(shapes), np.int64), counts)
        if (counts != counts[0]).any():
            other = int(np.flatnonzero(counts != counts[0])[0])
            raise EagerError(
                f"DDP expects same model across all ranks, but Rank {engine.rank} has "
                f"{len(shapes)} params, while rank {other} has inconsistent "
                f"{counts[other]} params."
            )
        flat = np.array([n for shape in shapes for n in (len(shape), *shape)], np.int64)
        first = np.zeros(8 * sum(len(s) + 1 for s in shapes) + 64, np.int64)
        first[: flat.size] = flat
        mine = first.copy()
        size = np.array(first.size, np.int64)
        engine.all_reduce(size, size, "max")
        first.resize(int(size), refcheck=False)
        mine.resize(int(size), refcheck=False)
        engine.broadcast(first, 0)
        differs = first != mine
        anywhere = differs.astype(np.uint8)
        engine.all_reduce(anywhere, anywhere, "max")
        if anywhere.any():
            first[anywhere > 0] = -1
            n = len(shapes)
            at = next((i for i in range(n) if _shape(first, i) != shapes[i]), n - 1)
            raise EagerError(
                f"[{engine.rank}]: params[{at}] in this process with sizes "
                f"{list(shapes[at])} appears not to match sizes of the same param in "
                f"process {0 if engine.rank else 'of another rank'}."
            )

    def _share(self, tensors: list[Any], root: int = 0) -> None:
        """Let everyone have one process's values."""
        engine = self.process_group.engine
        for tensor in tensors:
            _in_place(engine, array_of(tensor), lambda x: engine.broadcast(x, root))

    def _share_buffers(self, has_data: bool) -> None:
        """Let everyone have the buffers of one process that still has data."""
        buffers = self._buffers_shared()
        if not (self.require_forward_param_sync and self.broadcast_buffers and buffers):
            return
        root = 0
        if self._join_config.enable:
            engine = self.process_group.engine
            last = np.array(engine.rank if has_data else -1, np.int64)
            engine.all_reduce(last, last, "max")
            root = int(last)
        self._share(buffers, root)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """As the model; the next pass gives means, unless inside ``no_sync``."""
        if is_enabled() and self.require_backward_grad_sync:
            self.reducer.prepare()
        told = Join.notify_join_context(self)
        if told is not None and not self.divide_by_initial_world_size:
            self.reducer.divisor = told.output
        self._share_buffers(True)
        if self._join_config.enable:
            self._tell_whether_synced(self.require_backward_grad_sync)
        output = self.module(*inputs, **kwargs)
        synced = bool(is_enabled()) and self.require_backward_grad_sync
        self.require_forward_param_sync = synced
        if not self.require_forward_param_sync:
            self.reducer.armed = False
        return output

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """In its block gradients add up in each process by itself."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Let a function of a state and a bucket reduce it, and give a future."""
        self.reducer.hook_state, self.reducer.hook = state, hook

    def _set_static_graph(self) -> None:
        self.static_graph = self.reducer.find_unused = True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
        }

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Any, names: Any) -> None:
        module._ddp_params_and_buffers_to_ignore = names

    def __getstate__(self) -> dict[str, Any]:
        state = dict(Module.__getstate__(self))
        for name in ("process_group", "reducer"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        Module.__setstate__(self, state)
        self.process_group = default()
        self._begin()

    # --- uneven inputs ------------------------------------------------------------

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """A block in which processes may have different numbers of batches."""
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **options: Any) -> "DataParallelJoinHook":
        """What this process does for the others, once it has no more data."""
        divide = options.get("divide_by_initial_world_size", True)
        return DataParallelJoinHook(self, divide)

    @property
    def join_device(self) -> str:
        """Where the numbers lie that say who still has data."""
        return "cpu"

    @property
    def join_process_group(self) -> Any:
        """Whose processes those are."""
        return self.process_group

    def _tell_whether_synced(self, synced: bool) -> bool:
        """Whether the processes that still have data end their passes with means."""
        engine = self.process_group.engine
        mine = np.array(float(synced))
        engine.all_reduce(mine, mine, "sum")
        return bool(mine > 0)


def _shape(flat: Any, index: int) -> tuple[int, ...]:
    """The shape at an index in a list of numbers of axes and their lengths."""
    at = 0
    for _ in range(index):
        at += 1 + int(flat[at])
    return tuple(map(int, flat[at + 1 : at + 1 + int(flat[at])]))


class DataParallelJoinHook(JoinHook):
    """What a process does whose data are over: it takes part, with zeros."""

    def __init__(self, model: DistributedDataParallel, divide: bool) -> None:
        self.model = model
        model.divide_by_initial_world_size = divide

    def main_hook(self) -> None:
        """Take part in one step of the others."""
        model = self.model
        model._share_buffers(False)
        synced = model._tell_whether_synced(False)
        model.require_forward_param_sync = synced
        if synced:
            model.reducer.send_nothing()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Let all have the parameters of the last one that had data."""
        model, engine = self.model, self.model.process_group.engine
        last = np.array(engine.rank if is_last_joiner else -1, np.int64)
        engine.all_reduce(last, last, "max")
        model._share(model._state(), int(last))
        model.reducer.divisor = engine.size
