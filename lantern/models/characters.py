"""Recurrent networks that read a text letter by letter and expect the next one."""

from typing import Any

from lantern.torch import nn

__all__ = ["CharacterRNN"]

_CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


class CharacterRNN(nn.Module):
    """Scores of the next letter after each letter of a text.

    Args:
        vocabulary: how many letters there are.
        hidden: the size of the state.
        cell: ``"rnn"``, ``"lstm"`` or ``"gru"``.
        layers: how many lie on one another.
        dropout: how much is dropped between layers in training.

    Shapes:
        tokens: (n, t); result: (n, t, vocabulary), and the state after the last letter.

    References:
        A. Karpathy, "The Unreasonable Effectiveness of Recurrent Networks", 2015;
        the Lantern paper measures it with ``hidden=50``.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.models import CharacterRNN
        >>> model = CharacterRNN(vocabulary=30, cell="lstm")
        >>> scores, state = model(torch.tensor([[1, 2, 3]]))
        >>> scores.shape
        torch.Size([1, 3, 30])
    """

    def __init__(
        self,
        vocabulary: int,
        hidden: int = 50,
        cell: str = "rnn",
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.rnn = _CELLS[cell](
            vocabulary, hidden, layers, batch_first=True, dropout=dropout
        )
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, tokens: Any, state: Any = None) -> tuple[Any, Any]:
        """Scores of the next letters, and the state to go on from."""
        letters = nn.functional.one_hot(tokens, self.vocabulary)
        hidden, state = self.rnn(letters.to(self.decoder.weight.dtype), state)
        return self.decoder(hidden), state
