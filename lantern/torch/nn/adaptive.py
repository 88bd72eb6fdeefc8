"""A softmax over many classes, of which rare ones lie in clusters."""

from typing import Any, NamedTuple

from lantern.errors import EagerError, OptionError
from lantern.torch.functions.join_repeat import cat
from lantern.torch.nn import functional as F
from lantern.torch.nn.containers import ModuleList, Sequential
from lantern.torch.nn.linear import Linear
from lantern.torch.nn.module import Module
from lantern.torch.tensor.tensor import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """What the layer gives: each target's logarithm, and the loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The logarithms of probabilities of classes, of which rare ones cost less.

    The first layer knows the frequent classes, and clusters of the others; a cluster's
    own layer, which is smaller the rarer its classes are, tells them apart.

    Args:
        in_features: the length of an example.
        n_classes: how many classes there are, the most frequent ones first.
        cutoffs: where clusters begin.
        div_value: by what factor each cluster's layer is smaller.
        head_bias: whether the first layer adds a bias.
        device: where the weights shall lie.
        dtype: their type.

    References:
        E. Grave, A. Joulin, M. Cisse, D. Grangier and H. Jegou: Efficient softmax
        approximation for GPUs, 2017.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10])
        >>> found = layer(torch.ones(3, 16), torch.tensor([0, 7, 19]))
        >>> found.output.shape, found.loss.shape
        (torch.Size([3]), torch.Size([]))
        >>> layer.log_prob(torch.ones(3, 16)).shape
        torch.Size([3, 20])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Any,
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise OptionError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or any(int(c) != c for c in cutoffs)
            or not 0 < cutoffs[0] <= cutoffs[-1] < n_classes
        ):
            raise OptionError(
                "cutoffs should be a sequence of unique, positive integers sorted in "
                "an increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(self._clusters(), 1):
            size = int(in_features // div_value**i)
            self.tail.append(
                Sequential(
                    Linear(in_features, size, bias=False, **options),
                    Linear(size, high - low, bias=False, **options),
                )
            )

    def _clusters(self) -> Any:
        """The first class of each cluster, and the one behind its last."""
        return list(zip(self.cutoffs, self.cutoffs[1:], strict=False))

    def reset_parameters(self) -> None:
        """New draws for all layers."""
        for layer in (self.head, *(part for pair in self.tail for part in pair)):
            layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        """The targets' logarithms, and the mean of what they lack."""
        if input_.dim() not in (1, 2) or target_.dim() != input_.dim() - 1:
            raise EagerError(
                "AdaptiveLogSoftmaxWithLoss: expected an example and its class, or as "
                f"many of both; got {list(input_.shape)} and {list(target_.shape)}"
            )
        one = input_.dim() == 1
        x, target = (
            (input_.unsqueeze(0), target_.unsqueeze(0)) if one else (input_, target_)
        )
        if x.shape[0] != target.shape[0]:
            raise EagerError(
                "Input and target should have the same size in the batch dimension."
            )
        if target.numel() and not 0 <= target.min() <= target.max() < self.n_classes:
            raise EagerError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in "
                f"range [{target.min().item()}, {target.max().item()}] were found. "
            )
        place, own = target.clone(), x.new_zeros(len(target))
        for i, (low, high) in enumerate(self._clusters()):
            rows = ((target >= low) & (target < high)).nonzero().reshape(-1)
            if not len(rows):
                continue
            place[rows] = self.shortlist_size + i
            found = F.log_softmax(self.tail[i](x[rows]), dim=1)
            part = found.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)
            own = own.index_add(0, rows, part)
        head = F.log_softmax(self.head(x), dim=1)
        output = own + head.gather(1, place.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if one else output, loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithms of the probabilities of all classes."""
        head = F.log_softmax(self.head(input), dim=1)
        n = self.shortlist_size
        tails = [
            F.log_softmax(layer(input), dim=1) + head[:, n + i].unsqueeze(1)
            for i, layer in enumerate(self.tail)
        ]
        return cat([head[:, :n], *tails], 1)

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each example."""
        return self.log_prob(input).argmax(1)
