"""Collectives with derivatives: of the sum of all processes' losses, as in PyTorch."""

from typing import Any

from lantern.distributed import collectives
from lantern.distributed.world import group_of
from lantern.errors import EagerError
from lantern.torch.distributed.collectives import ReduceOp, _place
from lantern.torch.distributed.groups import chosen
from lantern.torch.tensor.operators import call

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _engine(group: Any) -> Any:
    return group_of(chosen(group).engine)


def _rows(tensors: Any) -> Any:
    from lantern.torch import stack

    return stack(list(tensors))


def _summed(what: str, op: Any) -> None:
    if op is not ReduceOp.SUM:
        raise EagerError(f"{what}: {op!r} has no derivative here. Use ReduceOp.SUM.")


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Combine a tensor over the processes.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> dist.nn.functional.all_reduce(x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        >>> dist.destroy_process_group()
    """
    return call(collectives.all_reduce, tensor, op.word, _engine(group))


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The sum over the processes, at one of them; zeros at the others.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> dist.nn.functional.reduce(x * x, dst=0).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        >>> dist.destroy_process_group()
    """
    _summed("reduce", op)
    root = _place(group, dst, None, "dst")
    return call(collectives.reduce, tensor, root, _engine(group))


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """One process's tensor, at all.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> dist.nn.functional.broadcast(3 * x, src=0).sum().backward()
        >>> x.grad
        tensor([3., 3.])
        >>> dist.destroy_process_group()
    """
    root = _place(group, src, None, "src")
    return call(collectives.broadcast, tensor, root, _engine(group))


def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """The tensors of all processes, at all.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (of_rank_0,) = dist.nn.functional.all_gather(2 * x)
        >>> of_rank_0.sum().backward()
        >>> x.grad
        tensor([2., 2.])
        >>> dist.destroy_process_group()
    """
    return tuple(call(collectives.all_gather, tensor, _engine(group)).unbind(0))


def gather(tensor: Any, dst: int = 0, group: Any = None) -> tuple[Any, ...]:
    """The tensors of all processes, at one of them; zeros at the others.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (of_rank_0,) = dist.nn.functional.gather(2 * x, dst=0)
        >>> of_rank_0.sum().backward()
        >>> x.grad
        tensor([2., 2.])
        >>> dist.destroy_process_group()
    """
    root = _place(group, dst, None, "dst")
    return tuple(call(collectives.gather, tensor, root, _engine(group)).unbind(0))


def scatter(tensors: Any, src: int = 0, group: Any = None) -> Any:
    """For each process one of a list of tensors of one process.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> dist.nn.functional.scatter([5 * x], src=0).sum().backward()
        >>> x.grad
        tensor([5., 5.])
        >>> dist.destroy_process_group()
    """
    root = _place(group, src, None, "src")
    return call(collectives.scatter, _rows(tensors), root, _engine(group))


def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None
) -> Any:
    """Lists of tensors, combined over the processes: one of the results for each.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> out = torch.empty(2)
        >>> dist.nn.functional.reduce_scatter(out, [x * x]).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        >>> dist.destroy_process_group()
    """
    _summed("reduce_scatter", op)
    return call(collectives.reduce_scatter, _rows(input_list), _engine(group))


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None
) -> tuple[Any, ...]:
    """For each process one of a list of tensors, and one of each.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (of_rank_0,) = dist.nn.functional.all_to_all([torch.empty(2)], [2 * x])
        >>> of_rank_0.sum().backward()
        >>> x.grad
        tensor([2., 2.])
        >>> dist.destroy_process_group()
    """
    rows = _rows(input_tensor_list)
    return tuple(call(collectives.all_to_all, rows, _engine(group)).unbind(0))


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
) -> Any:
    """As ``all_to_all``, of equal parts of one tensor along its first axis.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> dist.nn.functional.all_to_all_single(torch.empty(2), 2 * x)
        tensor([2., 4.], grad_fn=<ViewBackward0>)
        >>> dist.destroy_process_group()
    """
    n = _engine(group).size
    sizes = {*(output_split_sizes or ()), *(input_split_sizes or ())}
    if len(sizes) > 1:
        raise EagerError(
            f"all_to_all_single: parts of sizes {sorted(sizes)} have no derivative "
            f"here. Pad them to one size."
        )
    rows = input.reshape(n, -1, *input.shape[1:])
    return call(collectives.all_to_all, rows, _engine(group)).reshape(input.shape)
