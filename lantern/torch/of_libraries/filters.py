"""Filters that feed back what they gave, as ``torchaudio.functional`` has them."""

from typing import Any

import numpy as np

from lantern.torch.functions.creation import from_numpy
from lantern.torch.tensor.tensor import Tensor

__all__ = ["OPERATIONS"]


def _lfilter_core_loop(
    input_signal_windows: Tensor, a_coeffs_flipped: Tensor, padded_output: Tensor
) -> None:
    """What comes of a filter: each sample less what was given before, by its weights.

    Shapes:
        input_signal_windows: (n, channels, time); a_coeffs_flipped: (channels, order),
        the last for the sample itself, which is 1; padded_output: (n, channels,
        order - 1 + time), written from ``order - 1`` on
    """
    x, weights = (y.detach().numpy() for y in (input_signal_windows, a_coeffs_flipped))
    before = weights.shape[1] - 1
    z = padded_output.detach().numpy().copy()
    past = weights[:, :before]
    for i in range(x.shape[2]):
        fed_back = (past * z[:, :, i : i + before]).sum(2)
        z[:, :, i + before] = x[:, :, i] - fed_back
    padded_output.copy_(from_numpy(z))


def _overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output: Tensor
) -> None:
    """What comes of an overdriven amplifier, half of it as it came.

    Shapes:
        waveform, temp, output: (channels, time), of which the last is written;
        last_in, last_out: (channels,)
    """
    x, driven = waveform.detach().numpy(), temp.detach().numpy()
    before, after = last_in.detach().numpy(), last_out.detach().numpy()
    z: Any = np.empty_like(x)
    for i in range(x.shape[1]):
        after = driven[:, i] - before + 0.995 * after
        before = driven[:, i]
        z[:, i] = x[:, i] * 0.5 + after * 0.75
    output.copy_(from_numpy(z))


OPERATIONS = {f.__name__: f for f in (_lfilter_core_loop, _overdrive_core_loop)}
