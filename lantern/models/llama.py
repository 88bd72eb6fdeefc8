"""LLaMA: a decoder with rotated positions, gated layers and shared keys."""

from typing import Any

import lantern.torch as torch
from lantern.torch import nn

__all__ = ["Llama"]


def rotations(size: int, length: int, base: float, like: Any) -> tuple[Any, Any]:
    """Cosines and sines of the turns of pairs at each place: (length, size)."""
    steps = torch.arange(0, size, 2, dtype=like.dtype, device=like.device)
    places = torch.arange(length, dtype=like.dtype, device=like.device)
    angles = torch.outer(places, base ** (-steps / size))
    angles = torch.cat((angles, angles), 1)
    return angles.cos(), angles.sin()


def rotated(x: Any, turn: tuple[Any, Any]) -> Any:
    """Vectors turned by their places. x and the result: (n, heads, t, size)."""
    cos, sin = turn
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Attention(nn.Module):
    """Each token looks at itself and at those before it.

    Args:
        width: the size of a token's vector.
        heads: how many ways of looking there are.
        key_heads: how many of keys and values, each for several ways of looking.
    """

    def __init__(self, width: int, heads: int, key_heads: int) -> None:
        super().__init__()
        self.size, self.shared = width // heads, heads // key_heads
        self.q_proj = nn.Linear(width, heads * self.size, bias=False)
        self.k_proj = nn.Linear(width, key_heads * self.size, bias=False)
        self.v_proj = nn.Linear(width, key_heads * self.size, bias=False)
        self.o_proj = nn.Linear(heads * self.size, width, bias=False)

    def forward(self, x: Any, turn: tuple[Any, Any]) -> Any:
        """x and the result: (n, t, width)."""
        n, t, width = x.shape
        q, k, v = (
            layer(x).view(n, t, -1, self.size).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        k = rotated(k, turn).repeat_interleave(self.shared, 1)
        v = v.repeat_interleave(self.shared, 1)
        y = nn.functional.scaled_dot_product_attention(
            rotated(q, turn), k, v, is_causal=True
        )
        return self.o_proj(y.transpose(1, 2).reshape(n, t, width))


class MLP(nn.Module):
    """Each token for itself: one projection opens and closes another.

    Args:
        width: the size of a token's vector.
        inner: the size between.
    """

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Any) -> Any:
        """x and the result: (n, t, width)."""
        gate = nn.functional.silu(self.gate_proj(x))
        return self.down_proj(gate * self.up_proj(x))


class Layer(nn.Module):
    """Attention, then each token for itself, both added to what was there.

    Args:
        width: the size of a token's vector.
        inner: the size between in what each token does for itself.
        heads: of the attention.
        key_heads: of its keys and values.
        eps: of the normalisations.
    """

    def __init__(
        self, width: int, inner: int, heads: int, key_heads: int, eps: float
    ) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(width, eps=eps)
        self.self_attn = Attention(width, heads, key_heads)
        self.post_attention_layernorm = nn.RMSNorm(width, eps=eps)
        self.mlp = MLP(width, inner)

    def forward(self, x: Any, turn: tuple[Any, Any]) -> Any:
        """x and the result: (n, t, width)."""
        x = x + self.self_attn(self.input_layernorm(x), turn)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Layers between a table of tokens and a normalisation.

    Args:
        vocabulary: how many tokens there are.
        width: the size of a token's vector.
        layers: the layers.
        eps: of the normalisation.
    """

    def __init__(self, vocabulary: int, width: int, layers: Any, eps: float) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.RMSNorm(width, eps=eps)


class Llama(nn.Module):
    """Scores of the next token after each token of a text.

    With its defaults it has the shape of LLaMA 7B; the names of the parameters
    (``model.layers.0.self_attn.q_proj``, ...) are those of Hugging Face's files.

    Args:
        vocabulary: how many tokens there are.
        width: the size of a token's vector.
        inner: the size between in what each token does for itself.
        heads: of the attention.
        key_heads: of its keys and values; as many as heads, if it is None.
        layers: how many layers there are.
        base: of the angles of positions.
        eps: of the normalisations.

    Shapes:
        tokens: (n, t); result: (n, t, vocabulary).

    References:
        H. Touvron and others, "LLaMA: Open and Efficient Foundation Language Models",
        arXiv:2302.13971; J. Su and others, "RoFormer", arXiv:2104.09864.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.models import Llama
        >>> model = Llama(30, width=32, inner=64, heads=4, key_heads=2, layers=2)
        >>> model(torch.tensor([[1, 2, 3]])).shape
        torch.Size([1, 3, 30])
    """

    def __init__(
        self,
        vocabulary: int = 32000,
        width: int = 4096,
        inner: int = 11008,
        heads: int = 32,
        key_heads: int | None = None,
        layers: int = 32,
        base: float = 10000.0,
        eps: float = 1e-6,
    ) -> None:
        super().__init__()
        self.size, self.base = width // heads, base
        made = [
            Layer(width, inner, heads, key_heads or heads, eps) for _ in range(layers)
        ]
        self.model = Decoder(vocabulary, width, made, eps)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        for layer in self.modules():
            if isinstance(layer, nn.Linear | nn.Embedding):
                nn.init.normal_(layer.weight, std=0.02)

    def forward(self, tokens: Any) -> Any:
        """Scores of the next tokens."""
        x = self.model.embed_tokens(tokens)
        turn = rotations(self.size, tokens.shape[1], self.base, x)
        for layer in self.model.layers:
            x = layer(x, turn)
        return self.lm_head(self.model.norm(x))
