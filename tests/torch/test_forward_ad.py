"""Tangents that go forward with the program, beside PyTorch's."""

import functools
import importlib

import pytest

import lantern.torch as ours
from tests.torch.compared import assert_same, plain

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")
# Of its own parts.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:.torch.jit.script. is deprecated"
)


def parts(torch):
    return importlib.import_module(f"{torch.__name__}.autograd.forward_ad")


def at(torch):
    x = torch.arange(12.0, dtype=torch.float64).view(3, 4) / 10
    return x, torch.cos(x * 10)


def of_elements(torch, fw):
    x, t = at(torch)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        return fw.unpack_dual((d**2).sin() + d * x)


def of_layers(torch, fw):
    x, t = at(torch)
    F = torch.nn.functional
    with fw.dual_level():
        d = fw.make_dual(x, t)
        z = F.layer_norm(torch.softmax(d, 1) @ x.T, (3,))
        return fw.unpack_dual(F.cross_entropy(z, torch.tensor([0, 2, 1])))


def of_writes(torch, fw):
    x, t = at(torch)
    with fw.dual_level():
        d = fw.make_dual(x, t).clone()
        d[0] = 2
        d *= d[1].clone()
        return fw.unpack_dual(d)


def of_parameters(torch, fw):
    x, _ = at(torch)
    model = torch.nn.Linear(4, 2).double()
    for p in model.parameters():
        p.data = torch.arange(float(p.numel()), dtype=p.dtype).view(p.shape)
    given = dict(model.named_parameters())
    with fw.dual_level():
        for name, p in given.items():
            delattr(model, name)
            setattr(model, name, fw.make_dual(p, torch.ones_like(p)))
        return fw.unpack_dual(model(x).tanh()).tangent.detach()


def of_what_stands_still(torch, fw):
    x, t = at(torch)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        return fw.unpack_dual(x), fw.unpack_dual(d.detach()).tangent is None


def of_the_tangent_itself(torch, fw):
    x, t = at(torch)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        was = fw.unpack_dual(d).tangent is t
        d *= 2
        return was, fw.unpack_dual(d).tangent.clone()


def after_the_level(torch, fw):
    x, t = at(torch)
    with fw.dual_level():
        z = fw.make_dual(x, t) * 2
    return z.shape, fw.unpack_dual(z).tangent


def and_back(torch, fw):
    x, t = at(torch)
    x.requires_grad_()
    with fw.dual_level():
        z = (fw.make_dual(x, t) ** 3).sum()
        fw.unpack_dual(z).tangent.backward()
    return x.grad


def of_a_function(torch, fw):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.result = factor * torch.exp(x)
            return ctx.result

        @staticmethod
        def jvp(ctx, x_dot, factor):
            assert factor is None
            return 10 * x_dot * ctx.result

    x, t = at(torch)
    with fw.dual_level():
        return fw.unpack_dual(Exp.apply(fw.make_dual(x, t), 2.0))


PROGRAMS = [
    of_elements, of_layers, of_writes, of_parameters, of_what_stands_still,
    of_the_tangent_itself, after_the_level, and_back, of_a_function,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_tangent_is_pytorchs(program):
    mine, other = (program(torch, parts(torch)) for torch in (ours, theirs))
    assert_same(plain(mine), plain(other), rtol=1e-9, atol=1e-12)


def still(f, y, x):
    return f(x, y)


def test_a_function_states_how_it_moves():
    found = []
    for torch in (ours, theirs):

        class Product(torch.autograd.Function):
            @staticmethod
            def forward(x, y):
                return x * y, x + 1

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_forward(*inputs)

            @staticmethod
            def jvp(ctx, x_dot, y_dot):
                x, y = ctx.saved_tensors
                return 100 * (x_dot * y + x * y_dot), x_dot

        x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
        pairs = [
            torch.func.jvp(Product.apply, (x, y), (y, x)),
            torch.func.jvp(functools.partial(Product.apply, x), (y,), (x,)),
            torch.func.jvp(functools.partial(still, Product.apply, y), (x,), (y,)),
        ]
        found.append(plain(pairs))
    assert_same(*found)


@pytest.mark.parametrize(
    "source",
    [
        "fw.make_dual(x, x)",
        "fw.exit_dual_level()",
        "inside(lambda: fw.make_dual(x, x[:2]))",
        "inside(lambda: fw.make_dual(x.long(), x))",
        "inside(lambda: fw.enter_dual_level())",
    ],
)
def test_what_cannot_be_is_refused(source):
    classes = []
    for torch in (ours, theirs):
        fw = parts(torch)

        def inside(f, fw=fw):
            with fw.dual_level():
                f()

        with pytest.raises((RuntimeError, ValueError)) as caught:
            eval(source, {"fw": fw, "x": at(torch)[0], "inside": inside})
        classes.append(issubclass(caught.type, ValueError))
    assert classes[0] == classes[1]


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_tangents_are_checked(factor):
    for torch in (ours, theirs):

        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.x = x
                return x * x

            @staticmethod
            def jvp(ctx, x_dot):
                return 2 * factor * x_dot * ctx.x

        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        options = {"check_forward_ad": True, "check_backward_ad": False}
        options |= {"check_undefined_grad": False, "check_batched_grad": False}
        found = torch.autograd.gradcheck(
            Square.apply, (x,), raise_exception=False, **options
        )
        assert found is (factor == 1)


def test_a_write_to_a_dual_leaves_what_else_moves_by_the_same_tangent():
    fw = parts(ours)
    x, t = ours.tensor([1.0, 2.0]), ours.tensor([1.0, 1.0])
    with fw.dual_level():
        d = fw.make_dual(x, t)
        e = d + 1
        d *= 3
        assert fw.unpack_dual(d).tangent.tolist() == [3, 3]
        assert fw.unpack_dual(e).tangent.tolist() == [1, 1]
        assert t.tolist() == [1, 1]
        assert x.tolist() == [1, 2]
