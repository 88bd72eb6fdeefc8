"""Tables, of which positions name rows."""

from typing import Any

from lantern.errors import SizeError
from lantern.torch.nn import functional as F
from lantern.torch.nn import init
from lantern.torch.nn.linear import weights
from lantern.torch.nn.module import Module
from lantern.torch.nn.parameter import Parameter
from lantern.torch.tensor.tensor import Tensor

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(Module):
    """A table, of which positions name rows.

    Args:
        num_embeddings: how many rows it has.
        embedding_dim: the length of a row.
        padding_idx: the position of a row that is 0 and receives nothing.
        max_norm: rows that are longer are shortened when they are used.
        norm_type: which norm that means.
        scale_grad_by_freq: not supported.
        sparse: has no effect.
        _weight: a table to use.
        _freeze: whether it is to stay as it is.
        device: where the table shall lie.
        dtype: its type.

    Example:
        >>> import lantern.torch as torch
        >>> rows = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
        >>> table = torch.nn.Embedding.from_pretrained(rows)
        >>> table(torch.tensor([1, 0, 1]))
        tensor([[2., 3.],
                [0., 1.],
                [2., 3.]])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                name = "padding" if isinstance(self, EmbeddingBag) else "Padding"
                raise SizeError(f"{name}_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx, self.max_norm = padding_idx, max_norm
        self.norm_type, self.scale_grad_by_freq = norm_type, scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            self.weight = weights(
                num_embeddings, embedding_dim, dtype=dtype, device=device
            )
            self.weight.requires_grad_(not _freeze)
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight, not _freeze)

    def reset_parameters(self) -> None:
        """Standard normal draws; 0 for padding."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.data[self.padding_idx] = 0

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: Any = None,
        **options: Any,
    ) -> Any:
        """A table of given values, which by default stay as they are."""
        rows, width = embeddings.shape
        return cls(
            rows,
            width,
            padding_idx=padding_idx,
            _weight=embeddings,
            _freeze=freeze,
            **options,
        )

    def forward(self, input: Tensor) -> Tensor:
        """The rows at some positions."""
        weight = self.__dict__["_parameters"].get("weight")
        return F.embedding(
            input,
            self.weight if weight is None else weight,  # computed from others
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
        )

    def extra_repr(self) -> str:
        """The sizes, and what is not as usual."""
        parts = [f"{self.num_embeddings}", f"{self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.sparse:
            parts.append("sparse=True")
        return ", ".join(parts)


class EmbeddingBag(Embedding):
    """The sums, means or maxima of bags of rows of a table.

    Example:
        >>> import lantern.torch as torch
        >>> bags = torch.nn.EmbeddingBag(10, 3, mode="sum")
        >>> bags(torch.tensor([1, 2, 4, 5]), offsets=torch.tensor([0, 3])).shape
        torch.Size([2, 3])
        >>> bags
        EmbeddingBag(10, 3, mode='sum')
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
        _freeze: bool = False,
    ) -> None:
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight,
            _freeze,
            device=device,
            dtype=dtype,
        )
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(
        self, input: Tensor, offsets: Any = None, per_sample_weights: Any = None
    ) -> Tensor:
        """One row for each bag."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            False,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """The sizes, and what is not as usual."""
        return f"{super().extra_repr()}, mode={self.mode!r}"
