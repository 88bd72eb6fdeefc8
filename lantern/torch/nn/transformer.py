"""The transformer: layers of attention and perceptrons."""

import copy
from typing import Any

from lantern.errors import EagerError
from lantern.torch.functions.creation import full
from lantern.torch.methods import table
from lantern.torch.nn import functional as F
from lantern.torch.nn import init, simple
from lantern.torch.nn.attention import MultiheadAttention
from lantern.torch.nn.containers import ModuleList
from lantern.torch.nn.linear import Linear
from lantern.torch.nn.module import Module
from lantern.torch.nn.normalisation import LayerNorm
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer",
    "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip

Dropout = simple.made("Dropout")


def _causal(x: Tensor, batch_first: bool) -> Any:
    """A mask that hides from each time what comes after it."""
    n = x.shape[1] if batch_first and x.dim() == 3 else x.shape[0]
    return Transformer.generate_square_subsequent_mask(n, dtype=x.dtype)


def _attended(attend: Any, x: Tensor, memory: Tensor, mask: Any, padding: Any) -> Any:
    """What attention makes of x; by names, for a layer that is put in its place."""
    options = {"attn_mask": mask, "key_padding_mask": padding, "need_weights": False}
    return attend(x, memory, memory, **options)[0]


class _Layer(Module):
    """What layers of the encoder and of the decoder share."""

    norms = 2

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"dtype": dtype, "device": device}
        heads: Any = {"dropout": dropout, "bias": bias, "batch_first": batch_first}
        self.self_attn = MultiheadAttention(d_model, nhead, **heads, **options)
        if self.norms == 3:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **heads, **options)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **options)
        self.norm_first = norm_first
        numbers = range(1, self.norms + 1)
        for i in numbers:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **options)
            setattr(self, f"norm{i}", norm)
        for i in numbers:
            setattr(self, f"dropout{i}", Dropout(dropout))
        if isinstance(activation, str):
            if activation not in ("relu", "gelu"):
                raise EagerError(f"activation should be relu/gelu, not {activation}")
            activation = getattr(F, activation)
        self.activation = activation

    def _attend(self, x: Tensor, mask: Any, padding: Any) -> Tensor:
        return self.dropout1(_attended(self.self_attn, x, x, mask, padding))

    def _feed(self, x: Tensor) -> Tensor:
        inner = self.dropout(self.activation(self.linear1(x)))
        return getattr(self, f"dropout{self.norms}")(self.linear2(inner))


class TransformerEncoderLayer(_Layer):
    """Attention to itself and a perceptron, each added to its input and normalised.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.TransformerEncoderLayer(8, nhead=2, batch_first=True)
        >>> layer(torch.ones(4, 5, 8)).shape
        torch.Size([4, 5, 8])

    References:
        Vaswani et al. (2017), section 3.1.
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The layer's result."""
        if is_causal and src_mask is None:
            src_mask = _causal(src, self.self_attn.batch_first)
        x = src
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self._feed(self.norm2(x))
        x = self.norm1(x + self._attend(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self._feed(x))


class TransformerDecoderLayer(_Layer):
    """Attention to itself, to an encoder's results, and a perceptron.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.TransformerDecoderLayer(8, nhead=2, batch_first=True)
        >>> layer(torch.ones(4, 5, 8), torch.ones(4, 7, 8)).shape
        torch.Size([4, 5, 8])
    """

    norms = 3

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The layer's result."""
        if tgt_is_causal and tgt_mask is None:
            tgt_mask = _causal(tgt, self.self_attn.batch_first)

        def look(x: Tensor) -> Tensor:
            seen = memory, memory_mask, memory_key_padding_mask
            return self.dropout2(_attended(self.multihead_attn, x, *seen))

        x = tgt
        if self.norm_first:
            x = x + self._attend(self.norm1(x), tgt_mask, tgt_key_padding_mask)
            x = x + look(self.norm2(x))
            return x + self._feed(self.norm3(x))
        x = self.norm1(x + self._attend(x, tgt_mask, tgt_key_padding_mask))
        x = self.norm2(x + look(x))
        return self.norm3(x + self._feed(x))


class TransformerEncoder(Module):
    """Layers of an encoder on each other.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.TransformerEncoderLayer(8, nhead=2)
        >>> torch.nn.TransformerEncoder(layer, num_layers=3)(torch.ones(5, 4, 8)).shape
        torch.Size([5, 4, 8])
    """

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Any = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(
            [copy.deepcopy(encoder_layer) for _ in range(num_layers)]
        )
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Tensor,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: Any = None,
    ) -> Tensor:
        """What the last layer makes of it."""
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, bool(is_causal))
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Layers of a decoder on each other.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.TransformerDecoderLayer(8, nhead=2)
        >>> decoder = torch.nn.TransformerDecoder(layer, num_layers=3)
        >>> decoder(torch.ones(5, 4, 8), torch.ones(7, 4, 8)).shape
        torch.Size([5, 4, 8])
    """

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = ModuleList(
            [copy.deepcopy(decoder_layer) for _ in range(num_layers)]
        )
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: Any = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """What the last layer makes of it."""
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                bool(tgt_is_causal),
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder and a decoder (Vaswani et al., 2017).

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Transformer(
        ...     8, 2, num_encoder_layers=1, num_decoder_layers=1
        ... )
        >>> model(torch.ones(7, 4, 8), torch.ones(5, 4, 8)).shape
        torch.Size([5, 4, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation)
        rest: Any = (layer_norm_eps, batch_first, norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*sizes, *rest), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*sizes, *rest), num_decoder_layers, norm()
        )
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for x in self.parameters():
            if x.dim() > 1:
                init.xavier_uniform_(x)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: Any = None,
        tgt_is_causal: Any = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """What the decoder makes of the encoder's results.

        That a mask is causal is said by the mask; as a hint it has no effect.
        """
        batches = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batches) != tgt.size(batches):
            raise EagerError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise EagerError(
                "the feature number of src and tgt must be equal to d_model"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Any = None, dtype: Any = None
    ) -> Tensor:
        """-inf where a later time would be seen, else 0."""
        whole = full((sz, sz), float("-inf"), dtype=dtype, device=device)
        return table.FUNCTIONS["triu"](whole, 1)
