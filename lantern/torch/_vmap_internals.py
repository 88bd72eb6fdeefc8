"""``torch.vmap`` by the path at which libraries of before ``torch.func`` find it."""

from lantern.torch.func import vmap

__all__ = ["vmap"]

_vmap = vmap
