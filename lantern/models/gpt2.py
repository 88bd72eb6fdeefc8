"""GPT-2: a Transformer that reads from left to right and expects the next token."""

import math
from typing import Any

import lantern.torch as torch
from lantern.torch import nn

__all__ = ["GPT2"]


class Projection(nn.Module):
    """A linear layer whose weight has its inputs first, as the published files have it.

    Args:
        inputs: the size of what comes in.
        outputs: the size of the result.
        std: how far initial weights are spread.
    """

    def __init__(self, inputs: int, outputs: int, std: float = 0.02) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.normal_(self.weight, std=std)

    def forward(self, x: Any) -> Any:
        """x: (…, inputs); result: (…, outputs)."""
        return nn.functional.linear(x, self.weight.t(), self.bias)


class Attention(nn.Module):
    """Each token looks at itself and at those before it.

    Args:
        width: the size of a token's vector.
        heads: how many ways of looking there are.
        std: how far the initial weights of the last projection are spread.
    """

    def __init__(self, width: int, heads: int, std: float) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = Projection(width, 3 * width)
        self.c_proj = Projection(width, width, std)

    def forward(self, x: Any) -> Any:
        """x and the result: (n, t, width)."""
        n, t, width = x.shape
        q, k, v = (
            part.view(n, t, self.heads, -1).transpose(1, 2)
            for part in self.c_attn(x).split(width, 2)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(n, t, width))


class MLP(nn.Module):
    """Each token for itself, in four times its width.

    Args:
        width: the size of a token's vector.
        std: how far the initial weights of the last projection are spread.
    """

    def __init__(self, width: int, std: float) -> None:
        super().__init__()
        self.c_fc = Projection(width, 4 * width)
        self.c_proj = Projection(4 * width, width, std)

    def forward(self, x: Any) -> Any:
        """x and the result: (n, t, width)."""
        return self.c_proj(nn.functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    """Attention, then each token for itself, both added to what was there.

    Args:
        width: the size of a token's vector.
        heads: of the attention.
        dropout: how much of either is dropped in training.
        std: how far the initial weights of last projections are spread.
    """

    def __init__(self, width: int, heads: int, dropout: float, std: float) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads, std)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = MLP(width, std)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Any) -> Any:
        """x and the result: (n, t, width)."""
        x = x + self.drop(self.attn(self.ln_1(x)))
        return x + self.drop(self.mlp(self.ln_2(x)))


class GPT2(nn.Module):
    """Scores of the next token after each token of a text.

    The table of tokens is also the last layer. With its defaults it is the smallest of
    the published models, 124 million parameters; with the names of its parameters
    (``wte``, ``h.0.attn.c_attn``, ...) their weights load with ``strict=False``.

    Args:
        vocabulary: how many tokens there are.
        context: how many of them are seen at once.
        width: the size of a token's vector.
        heads: of the attention.
        layers: how many blocks there are.
        dropout: how much is dropped in training.

    Shapes:
        tokens: (n, t), t ≤ context; result: (n, t, vocabulary).

    References:
        A. Radford and others, "Language Models are Unsupervised Multitask Learners",
        2019.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.models import GPT2
        >>> model = GPT2(vocabulary=30, context=16, width=32, heads=4, layers=2)
        >>> model(torch.tensor([[1, 2, 3]])).shape
        torch.Size([1, 3, 30])
    """

    def __init__(
        self,
        vocabulary: int = 50257,
        context: int = 1024,
        width: int = 768,
        heads: int = 12,
        layers: int = 12,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.context = context
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout)
        std = 0.02 / math.sqrt(2 * layers)  # so that the sum over layers stays small
        self.h = nn.ModuleList(
            [Block(width, heads, dropout, std) for _ in range(layers)]
        )
        self.ln_f = nn.LayerNorm(width)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, tokens: Any) -> Any:
        """Scores of the next tokens."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.drop(self.wte(tokens) + self.wpe(places))
        for block in self.h:
            x = block(x)
        return nn.functional.linear(self.ln_f(x), self.wte.weight)
