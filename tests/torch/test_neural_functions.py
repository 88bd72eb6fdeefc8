"""``nn.functional`` where PyTorch's own records do not look."""

import pytest

import lantern.torch as ours
from tests.torch.compared import assert_same, plain

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")

# x, y of floating point (4, 3), t of classes, i images (2, 3, 4, 6).
SOURCES = """
F.mse_loss(x, y, size_average=False)
F.nll_loss(x, t, reduce=False)
F.cross_entropy(x, t, None, False)
F.smooth_l1_loss(x, y, size_average=True, reduce=True)
F.triplet_margin_loss(x, y, -x, size_average=False)
nn.L1Loss(size_average=False)(x, y)
nn.CrossEntropyLoss(reduce=False)(x, t)
F.l1_loss(x, y, reduction="most")
F.nll_loss(x, t, weight=torch.tensor([0.0, -1.0, 2.0]))
F.mse_loss(x, y, weight=y.detach() + 2)
F.smooth_l1_loss(x, y, beta=0.3)
F.huber_loss(x, y, delta=0.4)
F.huber_loss(x, y, "sum", weight=y.detach() + 2)
F.l1_loss(x, y, weight=y.detach() + 2)
F.l1_loss(x, y, weight=torch.tensor(2.0))
F.normalize(x, out=torch.empty(0))
F.linear(x, y[:2], y[:, :2])
F.interpolate(i, scale_factor=0.7, mode="bilinear", antialias=True)
F.interpolate(i, (3, 9), mode="bicubic", antialias=True, align_corners=False)
F.interpolate(i, (3, 3), mode="linear")
F.interpolate(i)
F.interpolate(i, 3, 2)
F.interpolate(i, (3, 3, 3))
F.interpolate(i, 3, align_corners=True)
F.upsample_nearest(i, scale_factor=2)
F.upsample_bilinear(i, size=(3, 5))
F.affine_grid(x.view(2, 2, 3), (2, 3, 4, 5), align_corners=False)
F.affine_grid(x.view(2, 2, 3), (2, 3, 1, 5), align_corners=True)
F.affine_grid(x, (4, 3, 4, 5))
F.grid_sample(i, F.affine_grid(x.view(2, 2, 3), i.shape))
F.grid_sample(i, x)
F.grid_sample(i, i, mode="best")
F.grid_sample(i, (x - x.detach().round()).view(2, 3, 1, 2), align_corners=True)
F.grid_sample(i, (x - x.detach() - 1).view(2, 3, 1, 2), align_corners=True)
F.grid_sample(i, (x - x.detach() - 1).view(2, 3, 1, 2), "bicubic", align_corners=True)
F.grid_sample(i.detach(), x.view(2, 3, 1, 2), "nearest", align_corners=True)
F.pad(x, (1, 2, 3))
F.pad(x, (3, 0), mode="reflect")
F.pad(i, (7, 0, 0, 0), mode="circular")
F.pad(i, (1, 0), mode="mirror")
F.max_pool2d(x, 2)
F.max_unpool2d(*F.max_pool2d(i, 2, return_indices=True), 2)
F.max_unpool2d(*F.max_pool2d(i[..., :5], 2, return_indices=True), 2, output_size=(4, 5))
F.max_unpool2d(*F.max_pool2d(i, 2, return_indices=True), 2, output_size=(9, 9))
F.lp_pool3d(i.abs()[None], 2.0, 2)
F.lp_pool2d(i, 3.0, (2, 5), ceil_mode=True)
F.lp_pool2d(i, -float("inf"), 2)
F.channel_shuffle(i[:, :2], 2)
F.conv2d(i, i[:, :, :2, :2], torch.ones(5))
F.conv_transpose2d(i, i[:, :, :2, :2].transpose(0, 1), output_padding=1)
"""


def outcome(torch, source):
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    x = torch.arange(12.0).view(4, 3).cos().requires_grad_()
    y = torch.arange(12.0).view(4, 3).sin().requires_grad_()
    i = torch.arange(144.0).view(2, 3, 4, 6).cos().requires_grad_()
    t = torch.tensor([2, 0, 1, 2])
    try:
        z = eval(source, {**names, "x": x, "y": y, "i": i, "t": t})
    except Exception as error:
        return type(error)
    (z * torch.arange(float(z.numel())).view(z.shape).cos()).sum().backward()
    return plain(z), [plain(v.grad) for v in (x, y, i)]


@pytest.mark.filterwarnings("ignore")  # of old names, by both
@pytest.mark.parametrize("source", SOURCES.strip().split("\n"))
def test_a_function_is_as_pytorchs(source):
    mine, other = outcome(ours, source), outcome(theirs, source)
    if isinstance(other, type):
        assert isinstance(mine, type), f"PyTorch raises {other}"
        assert issubclass(mine, other)
    else:
        assert_same(list(mine), list(other))


class TestAttentionByGivenKeys:
    def attended(self, **given):
        x, one = ours.arange(24.0).reshape(3, 2, 4) / 7, ours.eye(4)
        rest = 4, 2, ours.cat([one, 2 * one, 3 * one]), None, None, None, False, 0.0
        attend = ours.nn.functional.multi_head_attention_forward
        return attend(x, x, x, *rest, one, None, **given)

    def test_equals_attention_by_what_keys_and_values_become(self):
        x = ours.arange(24.0).reshape(3, 2, 4) / 7
        heads = x.reshape(3, 2, 2, 2).permute(1, 2, 0, 3).reshape(4, 3, 2)
        found = self.attended(static_k=2 * heads, static_v=3 * heads)
        for a, b in zip(found, self.attended(), strict=True):
            ours.testing.assert_close(a, b)

    @pytest.mark.parametrize("name", ["static_k", "static_v"])
    def test_other_sizes_are_refused(self, name):
        with pytest.raises(AssertionError, match=f"expecting {name} of sizes 4 and 2"):
            self.attended(**{name: ours.ones(4, 3, 1)})
