"""Batch norms that keep nothing of the batches they see."""

from typing import Any

__all__ = ["replace_all_batch_norm_modules_"]


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let batch norms inside of a module take each batch's moments, and keep none.

    The running moments are one value for all examples of a ``vmap``, to which none of
    them may write.

    Args:
        root: the module, which is changed and returned.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
        >>> _ = torch.func.replace_all_batch_norm_modules_(model)
        >>> x = torch.tensor([[[1.0, 0.0], [3.0, 0.0]]])
        >>> torch.vmap(model)(x)[0, :, 0].detach().round()
        tensor([-1.,  1.])
    """
    from lantern.torch.nn.normalisation import BatchNorm

    for module in root.modules():
        if isinstance(module, BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = None
            module.num_batches_tracked, module.track_running_stats = None, False
    return root
