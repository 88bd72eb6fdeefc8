"""Files as modules: run, differentiated both ways, trained, copied, saved."""

import copy
import io
import pickle

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason='the extra "onnx" is not installed')

import lantern  # noqa: E402
import lantern.onnx  # noqa: E402
import lantern.torch as torch  # noqa: E402
from lantern.errors import ArgumentError, MissingRuleError  # noqa: E402

HEAD = '<ir_version: 10, opset_import: ["": 20]>'
RNG = np.random.default_rng(0)


def perceptron():
    """A file of two layers, its weights under PyTorch's names."""
    helper, array = onnx.helper, onnx.numpy_helper.from_array
    shapes = {"a.weight": (4, 3), "a.bias": (4,), "b.weight": (2, 4), "b.bias": (2,)}
    weights = {n: RNG.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    nodes = [
        helper.make_node("Gemm", ["x", "a.weight", "a.bias"], ["h"], transB=1),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("Gemm", ["t", "b.weight", "b.bias"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, ["n", 3])],
        [helper.make_tensor_value_info("y", 1, ["n", 2])],
        [array(w, n) for n, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def twin(model):
    """The same network of layers, with the same weights."""
    nn = torch.nn
    net = nn.Sequential()
    net.add_module("a", nn.Linear(3, 4))
    net.add_module("t", nn.Tanh())
    net.add_module("b", nn.Linear(4, 2))
    net.load_state_dict(model.state_dict())
    return net


def test_values_and_gradients_are_those_of_layers():
    model = lantern.onnx.load(perceptron())
    net = twin(model)
    x = torch.randn(5, 3, requires_grad=True)
    for f in (model, net):
        (f(x) ** 2).sum().backward()
    grads = dict(net.named_parameters())
    assert [name for name, _ in model.named_parameters()] == list(grads)
    for name, p in model.named_parameters():
        assert torch.allclose(p.grad, grads[name].grad), name
    by_grad = lantern.grad(lambda x: (model(x) ** 2).sum())(x.detach())
    assert torch.allclose(2 * by_grad, x.grad)


def test_parameters_can_be_given():
    model = lantern.onnx.load(perceptron())
    x = torch.randn(5, 3)
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def loss(weights):
        return (torch.func.functional_call(model, weights, (x,)) ** 2).sum()

    found = lantern.grad(loss)(weights)
    loss(dict(model.named_parameters())).backward()
    for name, p in model.named_parameters():
        assert torch.allclose(found[name], p.grad), name


def test_it_is_trained_and_saved():
    model = lantern.onnx.load(perceptron())
    x, y = torch.randn(20, 3), torch.randn(20, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
    file = io.BytesIO()
    lantern.onnx.save(model, file)
    again = lantern.onnx.load(file.getvalue())
    assert torch.equal(again(x), model(x))
    onnx.checker.check_model(file.getvalue(), full_check=True)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies_have_weights_of_their_own(copied):
    model = lantern.onnx.load(perceptron())
    x = torch.randn(5, 3)
    before = model(x).detach()
    other = copied(model)
    with torch.no_grad():
        other.a.weight.fill_(0.0)
    assert torch.equal(model(x), before)
    assert not torch.equal(other(x), before)


def loaded(text):
    return lantern.onnx.load(onnx.parser.parse_model(f"{HEAD} {text}"))


def test_a_loop_is_differentiated():
    """x to the power of 2 to the n, n being an input."""
    model = loaded("""
        f (float x, int64 n) => (float y) {
            c = Constant <value = bool {1}> ()
            y = Loop (n, c, x) <body = squares
                (int64 i, bool go, float a) => (bool on, float b)
                { on = Identity(go)  b = Mul(a, a) }>
        }""")
    x = torch.tensor(1.5, requires_grad=True)
    model(x, 3).backward()
    assert x.grad.item() == pytest.approx(8 * 1.5**7)


def test_both_ways_of_a_condition_have_weights_that_learn():
    model = loaded("""
        f (float[N] x, bool up) => (float[N] y) {
            y = If (up) <
                then_branch = a () => (float[N] z) <float[1] w = {2}>
                { z = Mul(x, w) },
                else_branch = b () => (float[N] z) <float[1] w = {-3}>
                { z = Mul(x, w) }>
        }""")
    x = torch.tensor([1.0, 4.0])
    assert model(x, True).tolist() == [2.0, 8.0]
    assert model(x, False).tolist() == [-3.0, -12.0]
    model(x, False).sum().backward()
    assert [p.grad is None for p in model.parameters()] == [True, False]
    again = lantern.onnx.load(model.to_proto())
    assert again(x, False).tolist() == [-3.0, -12.0]


def test_functions_of_the_file_are_called_with_their_attributes():
    text = """<ir_version: 10, opset_import: ["": 20, "own": 1]>
        f (float[N] x) => (float[N] y) { y = own.leaky <slope = 0.5> (x) }
        <opset_import: ["": 20], domain: "own">
        leaky <slope> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }"""
    model = lantern.onnx.load(onnx.parser.parse_model(text))
    x = torch.tensor([-2.0, 3.0], requires_grad=True)
    z = model(x)
    z.sum().backward()
    assert z.tolist() == [-1.0, 3.0]
    assert x.grad.tolist() == [0.5, 1.0]


def test_what_has_no_derivative_computes_and_says_so_on_the_way_back():
    model = loaded("""
        f (float[1, 1, 4, 4] x, float[1, 4] rois, int64[1] batch) => (float y)
        { y = RoiAlign (x, rois, batch) }""")
    x = torch.ones(1, 1, 4, 4, requires_grad=True)
    rois = np.array([[0, 0, 2, 2]], np.float32)
    z = model(x, rois, np.array([0]))
    assert z.shape == (1, 1, 1, 1)
    with pytest.raises(MissingRuleError, match="RoiAlign"):
        z.sum().backward()


BAD_INPUTS = {
    "missing": ((), {}, "the input 'x' of the model is missing"),
    "too many": ((1, 2, 3), {}, "was given 3"),
    "unknown": ((1.0,), {"z": 1.0}, "no input 'z'"),
    "twice": ((1.0,), {"x": 1.0}, "given twice"),
    "a type": ((np.ones(2, np.int64),), {}, "has to be of type float32, got int64"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_inputs_that_do_not_fit_are_named(case):
    args, named, words = BAD_INPUTS[case]
    model = loaded("f (float[N] x) => (float[N] y) { y = Relu(x) }")
    with pytest.raises(ArgumentError, match=words):
        model(*args, **named)


def test_a_failing_operator_is_named_with_what_it_was_given():
    model = loaded("f (float[N] x, float[M] y) => (float[N] z) { z = Add(x, y) }")
    with pytest.raises(RuntimeError, match=r"Add failed on float32\[2\], float32\[3\]"):
        model(torch.ones(2), torch.ones(3))
