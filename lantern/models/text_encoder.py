"""A Transformer encoder: every token sees all others, and the text gets one answer."""

from typing import Any

import lantern.torch as torch
from lantern.torch import nn

__all__ = ["TextEncoder"]


class TextEncoder(nn.Module):
    """Scores of classes for texts.

    Args:
        vocabulary: how many tokens there are; token 0 fills short texts up.
        classes: the number of classes.
        context: how many tokens a text may have.
        width: the size of a token's vector.
        heads: of the attention.
        layers: how many layers there are.
        dropout: how much is dropped in training.

    Shapes:
        tokens: (n, t), t ≤ context; result: (n, classes).

    References:
        A. Vaswani and others, "Attention Is All You Need", NeurIPS 2017.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.models import TextEncoder
        >>> model = TextEncoder(30, classes=2, width=32, heads=4, layers=2).eval()
        >>> short, filled = torch.tensor([[5, 6]]), torch.tensor([[5, 6, 0, 0]])
        >>> torch.allclose(model(short), model(filled), atol=1e-6)
        True
    """

    def __init__(
        self,
        vocabulary: int,
        classes: int,
        context: int = 512,
        width: int = 256,
        heads: int = 4,
        layers: int = 4,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width, padding_idx=0)
        self.places = nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(
            width,
            heads,
            4 * width,
            dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(
            layer, layers, nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.classifier = nn.Linear(width, classes)

    def forward(self, tokens: Any) -> Any:
        """Scores of the classes."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.places(places)
        x = self.encoder(x, src_key_padding_mask=tokens == 0)
        there = (tokens != 0).to(x.dtype)[..., None]
        return self.classifier((x * there).sum(1) / there.sum(1).clamp(min=1))
