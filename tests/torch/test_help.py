"""What help and notebooks show: parameters, names, tables."""

import inspect

import numpy as np
import pytest

import lantern
import lantern.torch as torch
from lantern.torch import nn

LAYERS = {n: x for n, x in vars(nn).items() if n[0] != "_" and inspect.isclass(x)}
# Layers of any arguments, in PyTorch too.
FREE = {"Identity", "Module", "Sequential", "Softmax2d"}


@pytest.mark.parametrize("name", sorted(LAYERS.keys() - FREE))
def test_a_layer_shows_its_parameters(name):
    shown = inspect.signature(LAYERS[name]).parameters.values()
    kinds = {p.kind for p in shown}
    if LAYERS[name].__module__.startswith("lantern."):
        assert inspect.Parameter.VAR_POSITIONAL not in kinds


def test_a_lazy_layer_shows_its_own_defaults():
    shown = inspect.signature(nn.LazyInstanceNorm2d).parameters
    assert shown["affine"].default is True
    assert "num_features" not in shown

    class Own(nn.LazyLinear):
        def __init__(self, size):
            super().__init__(size)

    assert list(inspect.signature(Own).parameters) == ["size"]


def f(x):
    return x * x


@pytest.mark.parametrize(
    "verb",
    "grad value_and_grad elementwise_grad wirtinger vmap jacfwd jacrev".split(),
)
def test_a_derivative_is_called_after_its_function(verb):
    assert f"{verb}_of_f" in repr(getattr(lantern, verb)(f))


def test_a_tensor_in_a_notebook():
    shown = torch.tensor([1.0, 2.0], requires_grad=True)._repr_html_()
    assert shown.startswith("<pre>tensor([1., 2.], requires_grad=True)</pre>")
    assert "shape (2,) · float32 · cpu · requires grad" in shown


class TestSummary:
    def model(self):
        inner = nn.Sequential(nn.Linear(18, 4), nn.Dropout(), nn.Linear(4, 2))
        return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), inner)

    def test_its_table(self):
        """Names, shapes and numbers are torchinfo's for the same model."""
        rows = torch.utils.summary(self.model(), (4, 1, 5, 5)).rows()
        assert list(rows) == [
            ("Layer (type:depth-idx)", "Output Shape", "Param #"),
            ("Sequential", "[4, 2]", "--"),
            ("├─Conv2d: 1-1", "[4, 2, 3, 3]", "20"),
            ("├─ReLU: 1-2", "[4, 2, 3, 3]", "--"),
            ("├─Flatten: 1-3", "[4, 18]", "--"),
            ("├─Sequential: 1-4", "[4, 2]", "--"),
            ("│    ├─Linear: 2-1", "[4, 4]", "76"),
            ("│    ├─Dropout: 2-2", "[4, 4]", "--"),
            ("│    ├─Linear: 2-3", "[4, 2]", "10"),
        ]

    def test_its_sums(self):
        model = self.model()
        model[0].weight.requires_grad_(False)
        found = torch.utils.summary(model, (4, 1, 5, 5))
        assert found.total_params == 106
        assert found.trainable_params == 106 - 18
        assert found.total_mult_adds == 20 * 4 * 9 + 4 * 86
        assert "Non-trainable params: 18" in str(found)

    def test_other_columns_and_depths(self):
        columns = ["input_size", "kernel_size", "mult_adds", "num_params", "trainable"]
        rows = torch.utils.summary(
            self.model(), (4, 1, 5, 5), depth=1, col_names=columns
        ).rows()
        *_, conv, _, _, inner = rows
        assert conv[1:] == ("[4, 1, 5, 5]", "[3, 3]", "720", "20", "True")
        assert inner[1:] == ("[4, 18]", "--", "344", "86", "True")
        with pytest.raises(lantern.ArgumentError, match="unknown columns"):
            torch.utils.summary(self.model(), col_names=["colour"])

    def test_the_model_is_as_before(self):
        model = self.model().train()
        model[3][1].eval()
        torch.utils.summary(model, input_data=torch.ones(1, 1, 5, 5))
        assert [m.training for m in model.modules()].count(False) == 1
        assert not model[0]._forward_hooks

    def test_without_an_input_and_of_a_lazy_layer(self):
        text = str(torch.utils.summary(nn.Sequential(nn.LazyLinear(3))))
        assert "(lazy)" in text
        assert "mult-adds" not in text
        found = torch.utils.summary(nn.Sequential(nn.LazyLinear(3)), (2, 5))
        assert found.total_params == 18

    def test_inputs_by_name_and_of_several_shapes(self):
        class Two(nn.Module):
            def forward(self, a, b):
                return {"sum": a + b}

        found = torch.utils.summary(Two(), [(2, 3), (2, 3)])
        assert found.top.outputs == [2, 3]
        x = torch.from_numpy(np.ones((1, 2)))
        assert torch.utils.summary(Two(), input_data={"a": x, "b": x}).top.outputs
