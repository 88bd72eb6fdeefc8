"""Gradients that tensors keep, and functions that write to their arguments."""

import copy

import pytest

from tests.torch.compared import assert_same_scenario

pytest.importorskip("torch", reason="the peer that this face is compared with")


def leaf(torch, n=2):
    return torch.ones(n, requires_grad=True)


def doubled(torch):
    """A function that doubles its argument in place."""

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, z_bar):
            return z_bar * 2

    return Doubled


# --- Variable -------------------------------------------------------------------------


def variable_of_a_result(torch):
    x = leaf(torch)
    y = x * 2
    v = torch.autograd.Variable(y, requires_grad=True)
    (v * 3).sum().backward()
    return x.grad, v.grad, v.is_leaf, v is y, y.requires_grad


def variable_without_derivative(torch):
    x = leaf(torch)
    v = torch.autograd.Variable(x)
    return v.requires_grad, v.is_leaf, v is x, x.requires_grad


def variable_shares_memory(torch):
    x = torch.ones(2)
    v = torch.autograd.Variable(x, requires_grad=True)
    v.data.fill_(5)
    return x, v, isinstance(x, torch.autograd.Variable)


def variable_of_a_parameter(torch):
    p = torch.nn.Parameter(torch.ones(2))
    v = torch.autograd.Variable(p, True)
    (v * 2).sum().backward()
    return p.grad, v.grad, type(v) is torch.Tensor


def variable_of_integers(torch):
    return torch.autograd.Variable(torch.tensor([1]), requires_grad=True)


def variable_of_nothing(torch):
    return torch.autograd.Variable()


# --- mark_dirty -----------------------------------------------------------------------


def dirty_and_not_rebound(torch):
    x = leaf(torch)
    y = x * 3
    z = doubled(torch).apply(y)
    (y * 5).sum().backward()
    return x.grad, y, z is y


def dirty_and_rebound(torch):
    x = leaf(torch)
    z = doubled(torch).apply(x * 3)
    (z * 5).sum().backward()
    return x.grad, z


def dirty_leaf(torch):
    return doubled(torch).apply(leaf(torch))


def dirty_part_of_a_leaf(torch):
    return doubled(torch).apply(leaf(torch)[:1])


def dirty_constant(torch):
    x = torch.ones(2)
    return doubled(torch).apply(x) is x, x


def dirty_without_derivative(torch):
    x = leaf(torch)
    with torch.no_grad():
        z = doubled(torch).apply(x)
    return z.requires_grad, x


def dirty_view(torch):
    x = leaf(torch, 4)
    y = x * 3
    doubled(torch).apply(y[:2])
    (y * 5).sum().backward()
    return x.grad, y


def dirty_and_not_returned(torch):
    class Lost(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.clone()

    return Lost.apply(leaf(torch) * 3)


def dirty_saved_result(torch):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.exp_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, z_bar):
            return z_bar * ctx.saved_tensors[0]

    x = leaf(torch)
    y = x * 3
    Exp.apply(y)
    y.sum().backward()
    return x.grad, y


def dirty_twice(torch):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            x.mul_(2)
            y.add_(1)
            ctx.mark_dirty(x, y)
            return y, x

        @staticmethod
        def backward(ctx, y_bar, x_bar):
            return x_bar * 2, y_bar

    a = leaf(torch)
    x, y = a * 3, a * 4
    Both.apply(x, y)
    (x * 5 + y * 7).sum().backward()
    return a.grad, x, y


def dirty_buffer(torch):
    class Write(torch.autograd.Function):
        @staticmethod
        def forward(ctx, buffer, x, i):
            buffer[i] = x
            ctx.mark_dirty(buffer)
            ctx.i = i
            return buffer

        @staticmethod
        def backward(ctx, z_bar):
            rest = z_bar.clone()
            rest[ctx.i] = 0
            return rest, z_bar[ctx.i], None

    buffer, x = torch.zeros(3), torch.tensor(2.0, requires_grad=True)
    for i in range(3):
        Write.apply(buffer, x * i, i)
    (buffer * torch.arange(3)).sum().backward()
    return buffer, x.grad


def dirty_and_back_twice(torch):
    x = leaf(torch)
    y = x * 3
    doubled(torch).apply(y)
    z = (y * y).sum()
    z.backward(retain_graph=True)
    z.backward(retain_graph=True)
    (g,) = torch.autograd.grad(z, x, create_graph=True)
    return x.grad, torch.autograd.grad(g.sum(), x)


def dirty_after_it_was_saved(torch):
    y = leaf(torch) * 3
    w = y * y
    doubled(torch).apply(y)
    w.sum().backward()


# --- setup_context --------------------------------------------------------------------


def power(torch):
    class Power(torch.autograd.Function):
        @staticmethod
        def forward(x, n=3, scale=1):
            return scale * x**n

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.n, ctx.scale = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, z_bar):
            (x,) = ctx.saved_tensors
            return z_bar * ctx.scale * ctx.n * x ** (ctx.n - 1), None, None

    return Power


def context_with_defaults(torch):
    x = torch.tensor(2.0, requires_grad=True)
    power(torch).apply(x).backward()
    return x.grad


def context_with_a_default(torch):
    x = torch.tensor(2.0, requires_grad=True)
    power(torch).apply(x, 2).backward()
    return x.grad


def context_with_names(torch):
    x = torch.tensor(2.0, requires_grad=True)
    return power(torch).apply(x, scale=5, n=2)


def context_with_too_much(torch):
    return power(torch).apply(torch.ones(1), 1, 2, 3)


def context_under_transforms(torch):
    x = torch.tensor(2.0)
    found = torch.func.grad(power(torch).apply)(x)
    (back,) = torch.func.vjp(power(torch).apply, x)[1](torch.tensor(2.0))
    return found * 2, found.requires_grad, back + 1


# --- retain_grad ----------------------------------------------------------------------


def retained_twice(torch):
    y = leaf(torch) * 2
    y.retain_grad()
    z = (y * 3).sum()
    z.backward(retain_graph=True)
    z.backward()
    return y.grad


def retained_beside_its_own(torch):
    y = leaf(torch) * 2
    y.retain_grad()
    y.grad = torch.ones(2)
    (y * 3).sum().backward()
    return y.grad


def retained_after_hooks(torch):
    x = leaf(torch)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.register_hook(lambda g: g * 7)
    (y * 3).sum().backward()
    return y.grad, x.grad


def retained_through_a_write(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    y.mul_(5)
    (y * 3).sum().backward()
    return y.grad, x.grad, y.retains_grad


def retained_through_a_written_part(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    y[0] = 4
    (y * 3).sum().backward()
    return y.grad, x.grad


def retained_through_a_written_view(torch):
    x = leaf(torch, 4)
    y = x * 2
    y.retain_grad()
    y[:2].mul_(3)
    (y * 3).sum().backward()
    return y.grad, x.grad


def retained_through_a_function(torch):
    x = leaf(torch)
    y = x * 3
    y.retain_grad()
    doubled(torch).apply(y)
    (y * 5).sum().backward()
    return x.grad, y.grad


def retained_and_asked_for(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward(inputs=[y])
    return y.grad, x.grad


def retained_with_derivative(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    (y**2).sum().backward(create_graph=True)
    return y.grad.requires_grad, torch.autograd.grad(y.grad.sum(), x)


def retained_and_forgotten(torch):
    y = leaf(torch) * 2
    y.retain_grad()
    z = (y * 3).sum()
    z.backward(retain_graph=True)
    before, y.grad = y.grad, None
    z.backward(retain_graph=True)
    y.grad.zero_()
    z.backward()
    return before, y.grad


def hooks_stay_with_what_was_written_over(torch):
    y, log = leaf(torch) * 2, []
    y.register_hook(lambda g: log.append(("before", g)))
    y.mul_(5)
    y.register_hook(lambda g: log.append(("after", g)))
    (y * 3).sum().backward()
    return log


# --- grad as an attribute, copies -----------------------------------------------------


def grad_under_its_other_name(torch):
    p = torch.nn.Parameter(torch.ones(2))
    p._grad = torch.full((2,), 3.0)
    (p * 2).sum().backward()
    found = p._grad is p.grad, p.grad.clone()
    p._grad = None
    return found, p.grad


def grad_of_another_shape(torch):
    torch.nn.Parameter(torch.ones(2))._grad = torch.ones(3)


def grad_of_another_type(torch):
    torch.nn.Parameter(torch.ones(2)).grad = torch.ones(2).double()


def grad_that_is_itself(torch):
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = p


def grad_set_before(torch):
    x = torch.ones(2)
    x.grad = torch.full((2,), 4.0)
    x.requires_grad_()
    (x * 2).sum().backward()
    return x.grad


def grad_of_what_is_tracked_no_longer(torch):
    x, y = leaf(torch), leaf(torch)
    (x * y * 2).sum().backward()
    x.requires_grad_(False)
    return x.grad, y.detach_().grad, y.detach().grad


def grad_in_copies(torch):
    x, p = leaf(torch), torch.nn.Parameter(torch.ones(2))
    ((x + p) * 3).sum().backward()
    y = copy.deepcopy(x)
    y.grad.mul_(2)
    return x.grad, y.grad, copy.deepcopy(p).grad, copy.copy(x).grad, copy.copy(p).grad


def grad_in_a_shared_memo(torch):
    x = leaf(torch)
    (x * 3).sum().backward()
    y, g = copy.deepcopy([x, x.grad])
    return y.grad is g, g


def lying(torch, way):
    """Leaves in several forms, and the forms of their gradients."""
    four, forms = torch.arange(48.0).view(2, 3, 2, 4), []
    for x in (
        four.clone(),
        four.contiguous(memory_format=torch.channels_last),
        four.permute(3, 1, 0, 2),
        four[..., ::2],
        four[0, :, :, :1].expand(3, 2, 2),
        four[0, 0],
    ):
        x = x.detach().requires_grad_()
        for _ in range(2):
            way(x).sum().backward()
        forms.append((x.grad, x.grad.stride(), x.grad.is_contiguous()))
    return forms


def forms_of_gradients(torch):
    return lying(torch, lambda x: x)


def forms_of_gradients_of_other_forms(torch):
    return lying(torch, lambda x: x.transpose(0, 1) * 3)


def forms_of_gradients_of_products(torch):
    return lying(torch, lambda x: x.transpose(-1, -2) @ torch.ones(x.shape[-2], 3))


# --- views that were made without gradients ------------------------------------------


def of_a_result(torch):
    y = leaf(torch, 3) * 2
    with torch.no_grad():
        return y, y[:2]


def view_multiplied(torch):
    y, v = of_a_result(torch)
    v.mul_(3)
    return y


def view_added_to(torch):
    y, v = of_a_result(torch)
    v += leaf(torch)
    return y


def view_set(torch):
    y, v = of_a_result(torch)
    v[0] = 1.0
    return y


def view_of_a_view_zeroed(torch):
    y, v = of_a_result(torch)
    v.view(2, 1).zero_()
    return y


def view_rectified(torch):
    y, v = of_a_result(torch)
    torch.relu_(v)
    return y


def view_turned(torch):
    _, v = of_a_result(torch)
    return v.unsqueeze_(0)


def view_written_without_gradients(torch):
    y, v = of_a_result(torch)
    with torch.no_grad():
        v.mul_(3)
    return y, torch.autograd.grad(y.sum(), y)


def view_of_a_constant(torch):
    y = torch.ones(3)
    with torch.no_grad():
        v = y[:2]
    v.mul_(3)
    return y, v


def detached_view_written(torch):
    y, v = of_a_result(torch)
    v.detach().mul_(3)
    return y, y.requires_grad


def view_cut_off(torch):
    y = leaf(torch) * 2
    return y[:1].detach_()


SCENARIOS = [
    f for f in list(globals().values())
    if getattr(f, "__module__", "") == __name__
    and f not in (leaf, doubled, lying, of_a_result, power)
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda f: f.__name__)
def test_has_the_outcome_of_pytorch(scenario):
    assert_same_scenario(scenario)
