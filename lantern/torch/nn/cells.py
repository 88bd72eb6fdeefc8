"""One step of a recurrent network, as functions of weights and as modules."""

import math
from typing import Any

from lantern.errors import EagerError, OptionError
from lantern.tensor.ops.indexing import plain_getitem
from lantern.torch.functions.creation import zeros
from lantern.torch.methods import table
from lantern.torch.nn import init, rules
from lantern.torch.nn.gates import cell
from lantern.torch.nn.linear import weights
from lantern.torch.nn.module import Module
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.operators import unary
from lantern.torch.tensor.tensor import Tensor

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]

_F = table.FUNCTIONS
# A part whose memory nothing else shows.
part = unary(plain_getitem)
sigmoid, tanh, relu = _F["sigmoid"], _F["tanh"], _F["relu"]


def simple_step(bend: Any) -> Any:
    """The step ``h = bend(x + h @ weight.T + bias)`` of a simple network."""

    def step(x: Tensor, state: Any, weight: Any, bias: Any) -> tuple[Any, ...]:
        return (bend(rules.affine(state[0], weight, bias, x)),)

    return step


def memory_step(x: Tensor, state: Any, weight: Any, bias: Any) -> tuple[Any, ...]:
    """The step of a long short-term memory: what it shows, and what it keeps."""
    z = cell(x, *state, None, weight, None, bias)
    return part(z, 0), part(z, 1)


def gated_step(x: Tensor, state: Any, weight: Any, bias: Any) -> tuple[Any, ...]:
    """The step of a gated unit: reset, update, and something new."""
    (h,) = state
    n = base(h).shape[-1]
    y = rules.affine(h, weight, bias, None)
    both = sigmoid(x[..., : 2 * n] + y[..., : 2 * n])
    reset, update = both[..., :n], both[..., n:]
    new = tanh(x[..., 2 * n :] + reset * y[..., 2 * n :])
    return (new + update * (h - new),)


STEPS: dict[str, Any] = {
    # mode: the step, how many gates, how many states
    "RNN_TANH": (simple_step(tanh), 1, 1),
    "RNN_RELU": (simple_step(relu), 1, 1),
    "LSTM": (memory_step, 4, 2),
    "GRU": (gated_step, 3, 1),
}


def _misfit(shape: Any, wanted: Any) -> Exception:
    """The error of a state that does not fit to an input."""
    if len(shape) not in (1, 2):
        return OptionError(f"Expected hidden to be 1D or 2D, got {len(shape)}D instead")
    if shape[-1] != wanted[-1]:
        return EagerError(
            f"hidden0 has inconsistent hidden_size: got {shape[-1]}, expected "
            f"{wanted[-1]}"
        )
    return EagerError(
        f"Input batch size {wanted[0]} doesn't match hidden0 batch size {shape[0]}"
    )


class RNNCellBase(Module):
    """One step, with weights for the input and for the state.

    Example:
        >>> import lantern.torch as torch
        >>> isinstance(torch.nn.GRUCell(3, 5), torch.nn.RNNCellBase)
        True
    """

    mode: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        n, options = num_chunks * hidden_size, {"dtype": dtype, "device": device}
        self.weight_ih = weights(n, input_size, **options)
        self.weight_hh = weights(n, hidden_size, **options)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, weights(n, **options) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform draws, within ``1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for x in self.parameters():
            init.uniform_(x, -bound, bound)

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The next state; a pair for a long short-term memory."""
        count = STEPS[self.mode][2]
        shape = base(input).shape
        if len(shape) not in (1, 2):
            raise OptionError(
                f"{type(self).__name__}: Expected input to be 1D or 2D, got "
                f"{len(shape)}D instead"
            )
        if shape[-1] != self.input_size:
            raise EagerError(
                f"input has inconsistent input_size: got {shape[-1]}, expected "
                f"{self.input_size}"
            )
        lead = (*shape[:-1], self.hidden_size)
        if hx is None:
            hx = (zeros(lead, dtype=input.dtype, device=input.device),) * count
        else:
            hx = (hx,) if count == 1 else hx
            for h in hx:
                if base(h).shape != lead:
                    raise _misfit(base(h).shape, lead)
        if len(shape) == 1:
            z = self._step(input.unsqueeze(0), [s.unsqueeze(0) for s in hx])
            state = tuple(s.squeeze(0) for s in z)
        else:
            state = self._step(input, hx)
        return state if count == 2 else state[0]

    def _step(self, x: Tensor, state: Any) -> tuple[Any, ...]:
        """The next states of a batch of examples."""
        weight, recurrent, bias, more = self._weights()
        x = rules.affine(x, weight, bias, None)
        return STEPS[self.mode][0](x, state, recurrent, more)

    def _weights(self) -> tuple[Any, ...]:
        """Both weights and both biases."""
        own = self.__dict__["_parameters"]
        try:
            return own["weight_ih"], own["weight_hh"], own["bias_ih"], own["bias_hh"]
        except KeyError:  # computed from others: see ``nn.utils.parametrize``
            return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def extra_repr(self) -> str:
        """The sizes, and what is not as usual."""
        text = f"{self.input_size}, {self.hidden_size}"
        text += "" if self.bias else ", bias=False"
        name = self.__dict__.get("nonlinearity", "tanh")
        return text if name == "tanh" else f"{text}, nonlinearity={name}"


class _Gated(RNNCellBase):
    """A cell whose kind tells how many gates there are."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        gates = STEPS[self.mode][1]
        super().__init__(input_size, hidden_size, bias, gates, device, dtype)


class LSTMCell(_Gated):
    """One step of a long short-term memory (Hochreiter and Schmidhuber, 1997).

    Example:
        >>> import lantern.torch as torch
        >>> h, memory = torch.nn.LSTMCell(3, 5)(torch.ones(4, 3))
        >>> h.shape, memory.shape
        (torch.Size([4, 5]), torch.Size([4, 5]))
    """

    mode = "LSTM"

    def _step(self, x: Tensor, state: Any) -> tuple[Any, ...]:
        z = cell(x, *state, *self._weights())
        return part(z, 0), part(z, 1)


class GRUCell(_Gated):
    """One step of a gated recurrent unit (Cho et al., 2014).

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.GRUCell(3, 5)(torch.ones(4, 3)).shape
        torch.Size([4, 5])
    """

    mode = "GRU"


class RNNCell(RNNCellBase):
    """One step of a simple recurrent network.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.RNNCell(3, 5, nonlinearity="relu")(torch.ones(4, 3)).shape
        torch.Size([4, 5])
    """

    mode = "RNN_TANH"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise EagerError(f"Unknown nonlinearity: {nonlinearity}")
        self.nonlinearity = nonlinearity
        self.mode = f"RNN_{nonlinearity.upper()}"
