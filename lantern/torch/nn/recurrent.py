"""Recurrent networks of several layers, both ways, on padded or packed sequences."""

import math
from typing import Any

from lantern.errors import ArgumentError, EagerError, OptionError
from lantern.torch.functions.creation import zeros
from lantern.torch.methods import table
from lantern.torch.nn import functional as F
from lantern.torch.nn import init, rules
from lantern.torch.nn.cells import STEPS, part
from lantern.torch.nn.linear import weights
from lantern.torch.nn.module import Module
from lantern.torch.nn.sequences import course, memories, over_time
from lantern.torch.nn.utils.rnn import PackedSequence
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.dtypes import F32
from lantern.torch.tensor.tensor import Tensor

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]

_F = table.FUNCTIONS
cat, stack = _F["cat"], _F["stack"]


def _check_options(options: dict[str, Any], kind: Any) -> None:
    """Raise unless options are of a type, and numbers positive."""
    for name, value in options.items():
        if not isinstance(value, kind):
            raise ArgumentError(
                f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
            )
        if kind is int and value <= 0:
            raise OptionError(f"{name} must be greater than zero")


def projected(step: Any, weight: Any) -> Any:
    """A step that shows fewer numbers than it keeps (Sak et al., 2014)."""

    def fewer(*args: Any) -> tuple[Any, ...]:
        shown, memory = step(*args)
        return rules.affine(shown, weight, None, None), memory

    return fewer


def _last(z: Any, sizes: list[int], backwards: bool) -> list[Any]:
    """The states after the last time at which each example runs."""
    if backwards:
        return [part(z, (i, slice(sizes[0]))) for i in (0, 1)]
    ends, stop = [], 0
    for n, more in zip(sizes, [*sizes[1:], 0], strict=True):
        if more < n:
            ends.append(slice(stop + more, stop + n))
        stop += n
    ends = ends[::-1] or [slice(0)]  # of no examples, none
    rows = [[part(z, (i, end)) for end in ends] for i in (0, 1)]
    return [cat(parts) if len(parts) > 1 else parts[0] for parts in rows]


class RNNBase(Module):
    """What recurrent networks share.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size: the length of an input.
        hidden_size: the length of a state.
        num_layers: how many layers stand on each other.
        bias: whether there are biases.
        batch_first: whether the first axis is the batch, not time.
        dropout: what part of the results is dropped between layers.
        bidirectional: whether each layer also runs backwards.
        proj_size: of an LSTM, the length of what it shows, if not hidden_size.
        device: where the parameters shall lie.
        dtype: their type.

    Example:
        >>> import lantern.torch as torch
        >>> rnn = torch.nn.RNNBase("GRU", 3, 5)
        >>> [name for name, _ in rnn.named_parameters()]
        ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = {"input_size": input_size, "hidden_size": hidden_size}
        _check_options(sizes | {"num_layers": num_layers}, int)
        _check_options({"bias": bias, "batch_first": batch_first}, bool)
        if proj_size and mode != "LSTM":
            raise OptionError(
                "proj_size argument is only supported for LSTM, not RNN or GRU"
            )
        if not 0 <= proj_size < hidden_size:
            raise OptionError(
                "proj_size should be a positive integer or zero to disable projections"
                if proj_size < 0
                else "proj_size has to be smaller than hidden_size"
            )
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional = float(dropout), bidirectional
        self.proj_size = proj_size
        options = {"dtype": dtype, "device": device}
        n, shown = STEPS[mode][1] * hidden_size, self._shown
        for layer in range(num_layers):
            width = input_size if not layer else shown * self._ways
            for suffix in self._suffixes(layer):
                setattr(self, f"weight_ih{suffix}", weights(n, width, **options))
                setattr(self, f"weight_hh{suffix}", weights(n, shown, **options))
                if bias:
                    setattr(self, f"bias_ih{suffix}", weights(n, **options))
                    setattr(self, f"bias_hh{suffix}", weights(n, **options))
                if proj_size:
                    w = weights(proj_size, hidden_size, **options)
                    setattr(self, f"weight_hr{suffix}", w)
        self.reset_parameters()

    @property
    def _ways(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _shown(self) -> int:
        """The length of what a step shows."""
        return self.proj_size or self.hidden_size

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._ways]

    @property
    def _all_weights(self) -> list[list[str]]:
        names = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] * self.bias)]
        names += ["weight_hr"] * bool(self.proj_size)
        suffixes = [s for n in range(self.num_layers) for s in self._suffixes(n)]
        return [[name + suffix for name in names] for suffix in suffixes]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for row in self._all_weights for name in row]

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and way."""
        return [[getattr(self, name) for name in row] for row in self._all_weights]

    @property
    def _flat_weights(self) -> list[Any]:
        return [w for row in self.all_weights for w in row]

    def reset_parameters(self) -> None:
        """Uniform draws, within ``1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size)
        for x in self.parameters():
            init.uniform_(x, -bound, bound)

    def flatten_parameters(self) -> None:
        """Has no effect."""

    def forward(self, input: Any, hx: Any = None) -> Any:
        """All results of the last layer, and the last states of all.

        Shapes:
            input: (t, n, input_size), (n, t, ...) if batch_first, (t, ...) for one
            example, or packed; result: the same with hidden_size (or proj_size), twice
            as many if bidirectional; states: (layers * ways, n, hidden_size)
        """
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        ndim = base(input).ndim
        if ndim not in (2, 3):
            raise OptionError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {ndim}D "
                f"instead"
            )
        batched = ndim == 3
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        times, n, width = base(x).shape
        if not times:
            raise EagerError("Expected sequence length to be larger than 0 in RNN")
        if base(x).dtype != base(self.weight_ih_l0).dtype:
            raise OptionError(
                f"RNN input dtype ({x.dtype}) does not match weight dtype "
                f"({self.weight_ih_l0.dtype}). Convert input: "
                f"input.to({self.weight_ih_l0.dtype}), or convert model: "
                f"model.to({x.dtype})"
            )
        if width != self.input_size:
            raise EagerError(
                f"input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {width}"
            )
        states = self._states(hx, n, x, batched)
        sizes = [n] * times
        x, last = self._layers(x.reshape(times * n, width), sizes, states)
        x = x.reshape(times, n, base(x).shape[-1])
        if not batched:
            return x.squeeze(1), self._finished([s.squeeze(1) for s in last])
        x = x.transpose(0, 1) if self.batch_first else x
        return x, self._finished(last)

    def _packed(self, input: Any, hx: Any) -> Any:
        sizes = [int(n) for n in base(input.batch_sizes)]
        states = self._states(hx, sizes[0], input.data, True)
        if hx is not None and input.sorted_indices is not None:
            states = [s.index_select(1, input.sorted_indices) for s in states]
        data, last = self._layers(input.data, sizes, states)
        if input.unsorted_indices is not None:
            last = [s.index_select(1, input.unsorted_indices) for s in last]
        packed = PackedSequence(
            data, input.batch_sizes, input.sorted_indices, input.unsorted_indices
        )
        return packed, self._finished(last)

    def _finished(self, states: Any) -> Any:
        return tuple(states) if self.mode == "LSTM" else states[0]

    def _states(self, hx: Any, n: int, x: Tensor, batched: bool) -> list[Any]:
        """The first states: (layers * ways, n, hidden_size) each."""
        lead, count = (self.num_layers * self._ways, n), STEPS[self.mode][2]
        shapes = [(*lead, self._shown), (*lead, self.hidden_size)][:count]
        if hx is None:
            return [zeros(shape, dtype=x.dtype, device=x.device) for shape in shapes]
        states = list(hx) if count == 2 else [hx]
        if not batched:
            states = [s.unsqueeze(1) for s in states]
        for s, shape in zip(states, shapes, strict=True):
            if base(s).shape != shape:
                raise EagerError(
                    f"Expected hidden size {shape}, got {list(base(s).shape)}"
                )
        return states

    def _layers(self, x: Tensor, sizes: list[int], states: Any) -> tuple[Any, Any]:
        """All layers on rows of all times: results, and the last states."""
        last: list[list[Any]] = [[] for _ in states]
        for layer in range(self.num_layers):
            ways = []
            for way, suffix in enumerate(self._suffixes(layer)):
                start = [s[layer * self._ways + way] for s in states]
                z, end = self._way(x, sizes, start, suffix, backwards=way == 1)
                ways.append(z)
                for row, state in zip(last, end, strict=True):
                    row.append(state)
            x = ways[0] if len(ways) == 1 else cat(ways, 1)
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        return x, [stack(row) for row in last]

    def _way(
        self, x: Tensor, sizes: list[int], state: Any, suffix: str, backwards: bool
    ) -> tuple[Any, Any]:
        """One layer in one direction; sizes: how many examples still run at a time.

        The product with the inputs' weights is taken for all times at once.
        """

        def own(name: str) -> Any:  # which may be computed from others
            return getattr(self, name + suffix)

        step = STEPS[self.mode][0]
        if self.proj_size:
            step = projected(step, own("weight_hr"))
        bias, more = (own("bias_ih"), own("bias_hh")) if self.bias else (None, None)
        weight = own("weight_hh")
        if self.mode == "LSTM" and not self.proj_size:
            weights = own("weight_ih"), weight, bias, more
            return self._memories(x, sizes, state, weights, backwards)
        x = rules.affine(x, own("weight_ih"), bias, None)
        starts = [sum(sizes[:t]) for t in range(len(sizes))]
        results: list[Any] = []
        if backwards:
            first, ended = state, [s[: sizes[-1]] for s in state]
            for t in reversed(range(len(sizes))):
                here = base(ended[0]).shape[0]
                if here < sizes[t]:  # these examples end here: their way back starts
                    ended = [
                        cat([s, f[here : sizes[t]]])
                        for s, f in zip(ended, first, strict=True)
                    ]
                part = x[starts[t] : starts[t] + sizes[t]]
                ended = list(step(part, ended, weight, more))
                results.append(ended[0])
            return cat(results[::-1]), ended
        done: list[Any] = []
        for t, n in enumerate(sizes):
            if n < base(state[0]).shape[0]:
                done.append([s[n:] for s in state])
                state = [s[:n] for s in state]
            state = list(step(x[starts[t] : starts[t] + n], state, weight, more))
            results.append(state[0])
        if done:
            rows = [state, *done[::-1]]
            state = [cat([r[i] for r in rows]) for i in range(len(state))]
        return cat(results), state

    def _memories(
        self, x: Any, sizes: list[int], state: Any, weights: Any, back: bool
    ) -> tuple[Any, Any]:
        """A layer of long short-term memories in one direction."""
        weight, recurrent, bias, more = weights
        steps, n = course(tuple(sizes), back), sizes[0]
        if sizes[-1] == n and base(x).dtype == F32:
            z = over_time(x, *state, weight, recurrent, bias, more, steps=steps)
            shown = z[:-n]
            return shown, [shown[steps[-1].here], z[-n:]]
        x = rules.affine(x, weight, bias, None)
        z = memories(x, *state, recurrent, more, steps=steps)
        return part(z, 0), _last(z, sizes, back)

    def extra_repr(self) -> str:
        """The sizes, and what is not as usual."""
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.proj_size:
            parts.append(f"proj_size={self.proj_size}")
        if self.num_layers != 1:
            parts.append(f"num_layers={self.num_layers}")
        if not self.bias:
            parts.append("bias=False")
        if self.batch_first:
            parts.append("batch_first=True")
        if self.dropout:
            parts.append(f"dropout={self.dropout}")
        if self.bidirectional:
            parts.append("bidirectional=True")
        return ", ".join(parts)


class LSTM(RNNBase):
    """Long short-term memories (Hochreiter and Schmidhuber, 1997).

    Example:
        >>> import lantern.torch as torch
        >>> out, (h, memory) = torch.nn.LSTM(3, 5, num_layers=2)(torch.ones(7, 4, 3))
        >>> out.shape, h.shape, memory.shape
        (torch.Size([7, 4, 5]), torch.Size([2, 4, 5]), torch.Size([2, 4, 5]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            *("LSTM", input_size, hidden_size, num_layers, bias, batch_first),
            *(dropout, bidirectional, proj_size, device, dtype),
        )


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014).

    Example:
        >>> import lantern.torch as torch
        >>> out, h = torch.nn.GRU(3, 5, bidirectional=True)(torch.ones(7, 4, 3))
        >>> out.shape, h.shape
        (torch.Size([7, 4, 10]), torch.Size([2, 4, 5]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            *("GRU", input_size, hidden_size, num_layers, bias, batch_first),
            *(dropout, bidirectional, proj_size, device, dtype),
        )


class RNN(RNNBase):
    """Simple recurrent networks (Elman, 1990).

    Example:
        >>> import lantern.torch as torch
        >>> out, h = torch.nn.RNN(3, 5, batch_first=True)(torch.ones(4, 7, 3))
        >>> out.shape, h.shape
        (torch.Size([4, 7, 5]), torch.Size([1, 4, 5]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise OptionError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        self.__dict__["nonlinearity"] = nonlinearity
        mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(
            *(mode, input_size, hidden_size, num_layers, bias, batch_first),
            *(dropout, bidirectional, proj_size, device, dtype),
        )
