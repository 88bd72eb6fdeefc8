"""Texts that a model continues token by token."""

from typing import Any

import lantern.torch as torch

__all__ = ["generate"]


def generate(
    model: Any,
    tokens: Any,
    count: int,
    temperature: float = 1.0,
    generator: Any = None,
) -> Any:
    """Texts and what a model continues them with.

    Args:
        model: what gives scores of next tokens, (n, t, vocabulary); or those and a
            state, which it takes as a second argument to go on from. If it has a
            ``context``, it is shown no more tokens than that.
        tokens: how the texts begin, (n, t).
        count: how many tokens follow.
        temperature: below 1 likely tokens become more likely; 0 takes the likeliest.
        generator: where chance comes from.

    Returns:
        The tokens of the whole texts, (n, t + count).

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.models import GPT2, generate
        >>> model = GPT2(vocabulary=30, context=8, width=32, heads=4, layers=1)
        >>> generate(model, torch.tensor([[1, 2, 3]]), 10).shape
        torch.Size([1, 13])
    """
    context = getattr(model, "context", 0)
    seen, state = tokens, None
    with torch.no_grad():
        for _ in range(count):
            found = model(seen[:, -context:]) if state is None else model(seen, state)
            scores, state = found if isinstance(found, tuple) else (found, None)
            scores = scores[:, -1]
            if temperature == 0:
                chosen = scores.argmax(-1, keepdim=True)
            else:
                chances = torch.softmax(scores / temperature, -1)
                chosen = torch.multinomial(chances, 1, generator=generator)
            tokens = torch.cat((tokens, chosen), 1)
            seen = tokens if state is None else chosen
    return tokens
