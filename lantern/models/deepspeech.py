"""DeepSpeech2: convolutions over a spectrogram, recurrent layers, letters by CTC."""

from typing import Any

import lantern.torch as torch
from lantern.torch import nn

__all__ = ["DeepSpeech2"]

_CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


class Recurrent(nn.Module):
    """A recurrent layer of both directions, which are added.

    Args:
        inputs: the size of what comes in.
        hidden: the size of the result.
        cell: ``"rnn"``, ``"lstm"`` or ``"gru"``.
        normalised: whether what comes in is normalised over batch and time.
    """

    def __init__(self, inputs: int, hidden: int, cell: str, normalised: bool) -> None:
        super().__init__()
        self.batch_norm = nn.BatchNorm1d(inputs) if normalised else None
        self.rnn = _CELLS[cell](inputs, hidden, bidirectional=True)

    def forward(self, x: Any) -> Any:
        """x: (t, n, inputs); result: (t, n, hidden)."""
        if self.batch_norm is not None:
            x = self.batch_norm(x.flatten(0, 1)).view(x.shape)
        both, _ = self.rnn(x)
        t, n, _ = both.shape
        return both.view(t, n, 2, -1).sum(2)


class DeepSpeech2(nn.Module):
    """Log-probabilities of letters over time, for ``torch.nn.CTCLoss``.

    Args:
        classes: the number of letters, the blank among them.
        bands: the number of frequencies of a spectrogram.
        hidden: the size of the recurrent layers.
        layers: how many there are.
        cell: ``"rnn"``, ``"lstm"`` or ``"gru"``.
        channels: of the convolutions.

    Shapes:
        x: (n, 1, bands, t); result: (``steps(t)``, n, classes).

    References:
        D. Amodei and others, "Deep Speech 2: End-to-End Speech Recognition in English
        and Mandarin", ICML 2016; as the Lantern paper measures it: 161 bands, three
        layers of 1024, 29 letters, SGD with Nesterov's momentum 0.9 and rate 3e-4,
        gradients clipped at 400.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.models import DeepSpeech2
        >>> model = DeepSpeech2(classes=29, bands=41, hidden=8, layers=2, channels=4)
        >>> model(torch.zeros(2, 1, 41, 60)).shape, model.steps(60)
        (torch.Size([30, 2, 29]), 30)
    """

    def __init__(
        self,
        classes: int = 29,
        bands: int = 161,
        hidden: int = 1024,
        layers: int = 3,
        cell: str = "rnn",
        channels: int = 32,
    ) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, channels, (41, 11), (2, 2), (20, 5)),
            nn.BatchNorm2d(channels),
            nn.Hardtanh(0, 20, inplace=True),
            nn.Conv2d(channels, channels, (21, 11), (2, 1), (10, 5)),
            nn.BatchNorm2d(channels),
            nn.Hardtanh(0, 20, inplace=True),
        )
        inputs = channels * ((bands + 1) // 2 + 1 >> 1)
        self.rnns = nn.Sequential(
            *(
                Recurrent(hidden if i else inputs, hidden, cell, normalised=i > 0)
                for i in range(layers)
            )
        )
        self.batch_norm = nn.BatchNorm1d(hidden)
        self.fc = nn.Linear(hidden, classes, bias=False)

    def forward(self, x: Any) -> Any:
        """Log-probabilities of letters."""
        x = self.conv(x).flatten(1, 2).permute(2, 0, 1).contiguous()
        x = self.rnns(x)
        t, n, hidden = x.shape
        scores = self.fc(self.batch_norm(x.reshape(t * n, hidden)))
        return torch.log_softmax(scores.view(t, n, -1), -1)

    def steps(self, frames: Any) -> Any:
        """How many steps of letters there are for so many frames of a spectrogram.

        Example:
            >>> from lantern.models import DeepSpeech2
            >>> model = DeepSpeech2(hidden=2, layers=1, channels=1)
            >>> model.steps(100), model.steps(101)
            (50, 51)
        """
        return (frames + 1) // 2
