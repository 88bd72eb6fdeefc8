"""What is written to a view of a tracked tensor: its base and all views follow."""

import pytest

import lantern.torch as ours
from lantern.torch.tensor.view_memory import shows_all, window
from tests.torch.compared import assert_same_scenario

pytest.importorskip("torch", reason="the peer that this face is compared with")

# Views of h, of shape (4, 6, 8), and how they lie in it: whole, in a window, otherwise.
VIEWS = {
    "h.view(24, 8)": "whole",
    "h.view(4, 2, 3, 8)": "whole",
    "h.view(-1)": "whole",
    "h[1]": "window",
    "h[:, 2:5]": "window",
    "h[..., 1]": "window",
    "h[1:3, ::2, 1:7:3]": "window",
    "h[None, :, 3:]": "window",
    "h.transpose(0, 2)": "window",
    "h.permute(2, 0, 1)[1:5]": "window",
    "h.narrow(2, 3, 2).mT": "window",
    "h[2, 3]": "window",
    "h[0:1].squeeze(0)": "window",
    "h[2, 3, 4]": "window",
    "h.view(4, 2, 3, 8)[:, 1]": "window",
    "h.diagonal(dim1=1, dim2=2)": "otherwise",
    "h.view(4, 2, 3, 8)[:, :, 1]": "window",
    "h.view(24, 8)[3:15]": "otherwise",
    "h.view(-1)[5:50:3]": "otherwise",
}
WRITES = ["v.mul_(3)", "v.relu_()", "v.zero_()", "v.copy_(v * v)", "v.add_(w[0, 0, 0])"]
LAID = {
    "in rows": "(x * w)",
    "channels first": "(x * w).permute(2, 0, 1).contiguous().permute(1, 2, 0)",
    "a transposed one": "(x * w).mT.contiguous().mT",
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("laid", LAID)
@pytest.mark.parametrize("view", VIEWS)
def test_the_base_and_other_views_follow(view, laid, write):
    if "view(" in view and laid != "in rows":
        view = view.replace(".view(", ".reshape(")

    def scenario(torch):
        numbers = torch.arange(192, dtype=torch.float64).reshape(4, 6, 8)
        x = (numbers.sin()).requires_grad_()
        w = (numbers.cos()).requires_grad_()
        names = {"torch": torch, "x": x, "w": w}
        h = names["h"] = eval(LAID[laid], names)
        other = h[1:, 3]
        v = names["v"] = eval(view, names)
        shown = v._base is not None
        eval(write, names)
        total = (h * numbers).sum() + (other * other).sum() + v.sin().sum()
        total.backward()
        return h.detach(), other.detach(), x.grad, w.grad, shown

    assert_same_scenario(scenario)


@pytest.mark.parametrize("view", VIEWS)
def test_how_a_view_lies(view):
    h = ours.zeros(4, 6, 8)
    v = eval(view, {"h": h})
    assert shows_all(v, h) == (VIEWS[view] == "whole")
    part = window(v, h)
    assert (part is not None) == (VIEWS[view] == "window")
    if part is not None:
        found = h.numpy()[part.parts].transpose(part.order)
        assert found.shape == part.shape
        found[...] = 1
        assert v.all()
        assert h.sum() == v.numel()


@pytest.mark.parametrize(
    "view",
    ["h.expand(3, 4, 6, 8)", "h.unfold(2, 3, 1)", "h.as_strided((3, 2), (1, 1))"],
)
def test_a_view_that_shows_elements_twice_is_no_part(view):
    h = ours.zeros(4, 6, 8)
    assert window(eval(view, {"h": h}), h) is None
