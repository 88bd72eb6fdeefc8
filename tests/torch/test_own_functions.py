"""What a program's own functions and hooks may return, and what they may not."""

import pytest

import lantern.torch as torch
from tests.torch.compared import assert_same_scenario

pytest.importorskip("torch", reason="the peer that this face is compared with")

# Of functions of x: the forward and the backward step, of the cotangents g, in x.
STEPS = {
    "one result": ("x * 2", "g[0] * 2"),
    "a row of one": ("(x * 2,)", "(g[0] * 2,)"),
    "two results": ("(x * 2, x * 3)", "g[0] * 2 + g[1] * 3"),
    "a number beside it": ("(x * 2, 3)", "g[0] * 2"),
    "much beside it": ("(None, x * 2, 'a', x * 3)", "g[1] * 2 + g[3] * 3"),
    "only what is no tensor": ("(3, 'a')", "None"),
    "a list": ("[x * 2]", "None"),
    "a number": ("3", "None"),
    "integers": ("(x * 2).long()", "g[0]"),
    "integers beside it": ("(x * 2, (x * 2).long())", "g[0] * 2"),
    "nothing back": ("x * 2", "None"),
    "a number back": ("x * 2", "3"),
    "a text back": ("x * 2", "'a'"),
    "too small": ("x * 2", "g[0].sum()"),
    "too long": ("x * 2", "torch.ones(3)"),
    "to be summed": ("x * 2", "torch.ones(4, 2)"),
    "to be summed along one axis": ("x * 2", "torch.ones(4, 1)"),
    "another type": ("x * 2", "g[0].double()"),
    "too many": ("x * 2", "(g[0], g[0])"),
    "one too many, which is None": ("x * 2", "(g[0], None)"),
    "a number is saved": ("(ctx.save_for_backward(3), x * 2)[1]", "g[0]"),
    "None is saved": (
        "(ctx.save_for_backward(None, x), x * 2)[1]",
        "ctx.saved_tensors[1]",
    ),
}


def function(torch, forward, backward, name="backward"):
    def first(ctx, x):
        return eval(forward, {"ctx": ctx, "x": x, "torch": torch})

    def second(ctx, *g):
        seen.append([type(z).__name__ for z in g])
        return eval(backward, {"ctx": ctx, "g": g, "torch": torch})

    seen = []
    steps = {"forward": staticmethod(first), name: staticmethod(second), "seen": seen}
    return type("Own", (torch.autograd.Function,), steps)


@pytest.mark.parametrize("name", STEPS)
def test_steps_have_the_outcome_of_pytorch(name):
    def scenario(torch):
        own = function(torch, *STEPS[name])
        x = torch.ones(2, requires_grad=True)
        z = own.apply(x)
        row = z if isinstance(z, tuple) else (z,)
        tracked = [y for y in row if isinstance(y, torch.Tensor) and y.requires_grad]
        for y in tracked:
            y.sum().backward(retain_graph=True)
        return z, len(tracked), x.grad, own.seen

    assert_same_scenario(scenario)


def test_the_backward_step_may_be_called_vjp():
    def scenario(torch):
        x = torch.ones(2, requires_grad=True)
        function(torch, "x * 2", "g[0] * 7", "vjp").apply(x).sum().backward()
        return x.grad

    assert_same_scenario(scenario)


def test_a_function_has_one_backward_step():
    def scenario(torch):
        own = function(torch, "x * 2", "g[0]")
        own.vjp = staticmethod(lambda ctx, g: g)
        own.apply(torch.ones(2, requires_grad=True)).sum().backward()

    assert_same_scenario(scenario)


HOOKS = {
    "nothing": "None",
    "another gradient": "g * 10",
    "a text": "'a'",
    "a number": "3",
    "another size": "torch.ones(3)",
    "another type": "g.double()",
    "a tracked tensor": "g.clone().requires_grad_()",
}


@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "result"])
@pytest.mark.parametrize("returned", HOOKS)
def test_hooks_have_the_outcome_of_pytorch(returned, leaf):
    def scenario(torch):
        x = torch.ones(2, requires_grad=True)
        y = x * 3
        hooked = x if leaf else y
        hooked.register_hook(lambda g: eval(HOOKS[returned], {"g": g, "torch": torch}))
        y.sum().backward()
        return x.grad.detach()

    assert_same_scenario(scenario)


NAMES = "shapes places count slots materialize with_gaps check settle level read saved"


@pytest.mark.parametrize("name", NAMES.split())
def test_a_context_keeps_any_name_of_the_programs(name):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            setattr(ctx, name, factor)
            return x * factor

        @staticmethod
        def backward(ctx, z_bar):
            return z_bar * getattr(ctx, name), None

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert not hasattr(torch.autograd.function.FunctionCtx(), name)
    Twice.apply(x, 2.0).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def cubes(way):
    """A loss by functions of the program's own: one saves, one writes."""

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x**3 * y, y**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, z_bar, other_bar):
            x, y = ctx.saved_tensors
            return z_bar * 3 * x**2 * y, z_bar * x**3 + other_bar * 2 * y

        @staticmethod
        def jvp(ctx, x_dot, y_dot):
            x, y = ctx.saved_tensors
            return 3 * x**2 * y * x_dot + x**3 * y_dot, 2 * y * y_dot

    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x.mul_(3)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx, z_bar):
            return z_bar * 3

        @staticmethod
        def jvp(ctx, x_dot):
            return x_dot.mul_(3)

    def saved(x, y):
        z, other = Cube.apply(x, y)
        return (z * x + other * z).sum()

    def written(x, y):
        w = x * y
        z = Triple.apply(w)
        return (w * z * x).sum()

    return {"saved": saved, "written": written}[way]


# The derivatives by x at 2, of the first order on; that of the first by y.
SLOPES = {  # of x⁴y + x³y³ and of 9x³y², where y is 3
    "saved": ([420, 468, 306, 72], 356),
    "written": ([972, 972, 486, 0], 648),
}
WAYS = {
    "grad": lambda f: torch.func.grad(f),
    "jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (x * 0 + 1,))[1],
    "vjp": lambda f: lambda x: torch.func.vjp(f, x)[1](x * 0 + 1)[0],
}


@pytest.mark.parametrize("outer", [*WAYS, "backward", "none"])
@pytest.mark.parametrize("inner", WAYS)
@pytest.mark.parametrize("way", ["saved", "written"])
def test_derivatives_inside_of_one_another_see_through_a_function(way, inner, outer):
    x, y = (torch.tensor(v, dtype=torch.float64) for v in (2.0, 3.0))
    f = cubes(way)
    slopes, by_y = SLOPES[way]
    once = WAYS[inner](lambda x: f(x, y))
    if outer == "backward":
        x.requires_grad_()
        y.requires_grad_()
        by_x, found = torch.autograd.grad(once(x), (x, y), create_graph=True)
        assert (by_x.item(), found.item()) == pytest.approx((slopes[1], by_y))
        assert torch.autograd.grad(by_x, x)[0].item() == pytest.approx(slopes[2])
    else:
        order = 0 if outer == "none" else 1
        last = WAYS[outer](once) if order else once
        found = [last(x).item(), torch.func.grad(last)(x).item()]
        assert found == pytest.approx(slopes[order : order + 2])


def stacking(torch, writes_between):
    """Steps that share their memory, and the memory of its gradient (Feedback
    Transformer, Fan et al. 2020, as it is programmed)."""

    class Stacked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, memory, gradient, last, n):
            ctx.gradient, ctx.n = gradient, n
            return memory[: n + 1]

        @staticmethod
        def backward(ctx, z_bar):
            ctx.gradient[: ctx.n + 1] += z_bar
            return None, None, ctx.gradient[ctx.n], None

    w = torch.ones(2, dtype=torch.float64, requires_grad=True)
    leaf = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    memory, gradient = (torch.zeros(4, 2, dtype=torch.float64) for _ in range(2))
    found = []
    for _ in range(2):
        gradient.zero_()
        last, total = leaf, 0
        for n in range(3):
            memory.data[n] = last.detach()
            total = total + (Stacked.apply(memory, gradient, last, n) * w).sum()
            last = total * w
        if writes_between:
            gradient.add_(1)
        total.backward()
        found += [total.detach(), w.grad, leaf.grad]
        w.grad = leaf.grad = None
    return found


def test_backward_steps_may_add_to_what_they_share():
    assert_same_scenario(lambda torch: stacking(torch, writes_between=False))


def test_what_backward_steps_share_is_written_to_by_nobody_else():
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        stacking(torch, writes_between=True)
