"""Operators: values beside the reference evaluator, derivatives beside differences.

A sample, made here in little time; ``tests/conformance/onnx_backend.py`` runs all cases
of the format.
"""

from types import SimpleNamespace

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason='the extra "onnx" is not installed')

from tests.conformance.onnx_cases import Loaded, check_derivative  # noqa: E402

# An operator with attributes, and the shapes of its inputs; "i" is a place, "p" is
# positive.
TABLE = """
Relu                                                            | x 2 3
Mul                                                             | x 2 3, y 3
Div                                                             | x 2 3, p 1 3
Pow                                                             | p 2 3, y 3
Clip                                                            | x 2 3
Gelu<approximate = "tanh">                                      | x 2 3
Softmax<axis = 0>                                               | x 2 3
LogSoftmax                                                      | x 2 3
MatMul                                                          | x 2 3 4, y 4 5
Gemm<alpha = 0.5, beta = 2.0, transA = 1>                       | x 3 2, y 3 4, z 4
Gemm<transB = 1>                                                | x 2 3, y 4 3, z 4
Einsum<equation = "ij,jk->k">                                   | x 2 3, y 3 4
Det                                                             | x 3 3
ReduceMean<keepdims = 0>                                        | x 2 3
ReduceMax                                                       | x 2 3
ReduceLogSumExp                                                 | x 2 3
ReduceL1                                                        | x 2 3
Transpose<perm = [1, 0]>                                        | x 2 3
Concat<axis = 1>                                                | x 2 3, y 2 1
Gather<axis = 1>                                                | x 2 3, i 2
ScatterElements<axis = 1, reduction = "add">                    | x 2 3, i 2 2, y 2 2
GatherElements<axis = 1>                                        | x 2 3, i 2 2
Conv<pads = [1, 0, 2, 1], strides = [2, 1]>                     | x 1 2 5 4, w 3 2 3 2, b 3
Conv<group = 2, auto_pad = "SAME_UPPER">                        | x 1 2 5 4, w 2 1 3 2
ConvTranspose<strides = [2], output_padding = [1]>              | x 1 2 4, w 2 3 3, b 3
MaxPool<kernel_shape = [2, 2], pads = [1, 1, 1, 1]>             | x 1 2 4 4
AveragePool<kernel_shape = [3], strides = [2], ceil_mode = 1>   | x 1 2 6
GlobalAveragePool                                               | x 1 2 3 3
BatchNormalization                                              | x 2 3 2, s 3, b 3, m 3, p 3
LayerNormalization                                              | x 2 3, s 3, b 3
InstanceNormalization                                           | x 2 3 4, s 3, b 3
GroupNormalization<num_groups = 2>                              | x 2 4 3, s 4, b 4
LRN<size = 3>                                                   | x 4 4 2 2
PRelu                                                           | x 2 3, s 3
LSTM<hidden_size = 2>                                           | x 3 1 2, w 1 8 2, r 1 8 2
LSTM<hidden_size = 2, direction = "bidirectional">              | x 3 1 2, w 2 8 2, r 2 8 2
GRU<hidden_size = 2, linear_before_reset = 1>                   | x 3 1 2, w 1 6 2, r 1 6 2
RNN<hidden_size = 2, direction = "reverse">                     | x 3 1 2, w 1 2 2, r 1 2 2
DepthToSpace<blocksize = 2>                                     | x 1 4 1 2
Trilu                                                           | x 3 3
Sum                                                             | x 2 3, y 3, z 1
"""  # noqa: E501
ROWS = [tuple(map(str.strip, row.split("|"))) for row in TABLE.strip().splitlines()]


def case_of(call, inputs):
    """A case as the package's own are: a model, what goes in, what comes out."""
    rng = np.random.default_rng(0)
    feeds, types = [], []
    for part in inputs.split(", "):
        name, *lengths = part.split()
        shape = tuple(map(int, lengths))
        x = rng.normal(size=shape).astype(np.float32)
        if name == "i":
            x = rng.integers(0, 2, shape)
        feeds.append(np.abs(x) + np.float32(0.5) if name == "p" else x)
        kind = "int64" if name == "i" else "float"
        types.append(f"{kind}[{','.join(lengths)}] {name}")
    names = ", ".join(part.split()[0] for part in inputs.split(", "))
    given = ", ".join(types)
    operator, _, attributes = call.partition("<")
    node = f"{operator} {'<' + attributes if attributes else ''} ({names})"
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21]> f ({given}) => (float out) '
        f"{{ out = {node} }}"
    )
    return SimpleNamespace(name=call, model=model, data_sets=[(feeds, None)])


@pytest.mark.parametrize(("call", "inputs"), ROWS, ids=[row[0] for row in ROWS])
def test_values_and_derivatives(call, inputs):
    case = case_of(call, inputs)
    feeds = case.data_sets[0][0]
    names = [value.name for value in case.model.graph.input]
    evaluator = onnx.reference.ReferenceEvaluator(case.model)
    (wanted,) = evaluator.run(None, dict(zip(names, feeds, strict=True)))
    (found,) = Loaded(case.model).run(feeds)
    assert found.dtype == wanted.dtype
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert check_derivative(case) == "confirmed"


@pytest.mark.parametrize("scale", [1.001, -1.0])
def test_wrong_derivatives_are_found(scale, monkeypatch):
    """The check itself: of a rule that is wrong by a factor."""
    import lantern
    from lantern.onnx.operators import table

    @lantern.custom_rule
    def wrong(x, /):
        z_bar = yield np.exp(x)
        yield z_bar * np.exp(x) * scale

    monkeypatch.setitem(table.OPERATORS, ("", "Exp"), [(1, lambda x: wrong(x))])
    with pytest.raises(AssertionError, match="by differences"):
        check_derivative(case_of("Exp", "x 2 3"))


def of_products(nodes):
    """A gradient operator behind a product and a sum."""
    return onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 20, "ai.onnx.preview.training": 1]>
        f (float a, float b) => (float c, float d, float e)
        {{ {nodes}
           d, e = ai.onnx.preview.training.Gradient
               <xs = ["a", "b"], y = "c"> (a, b) }}"""
    )


def test_the_gradient_operator_is_differentiated_again():
    import lantern.onnx
    import lantern.torch as torch

    model = lantern.onnx.load(of_products("s = Mul(a, a) c = Mul(s, b)"))
    a, b = torch.tensor(3.0, requires_grad=True), torch.tensor(5.0)
    c, by_a, by_b = model(a, b)
    assert (c.item(), by_a.item(), by_b.item()) == (45.0, 30.0, 9.0)
    by_a.backward()
    assert a.grad.item() == 10.0
