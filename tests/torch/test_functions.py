"""Functions and methods against PyTorch: values, types, shapes, gradients, errors."""

import pytest

from tests.torch.compared import assert_equivalent, assert_same_scenario

EXPRESSIONS = """
a + b; a - b; a * b; a / p; a ** 2; p ** b; 2 ** a; a % 2; a + 1; 1 - a; 2 / p; -a
abs(a); a + v; v * a; s * a; a / s; a + i; i + i; i / 2; i / i.clamp(min=1); i * 2.5
i + 1; i // 2; i ** 2; m & m; m | ~m; m ^ m; i & 1; i << 1; i >> 1; True + i; m + m
m * 2; m * 1.5; a.double() + b; a.double() * v.float(); a + s.double(); i.int() + i
i.int() * s; i + s; a < b; a <= 0; a == b; a != 1; i > 1; i >= k.view(3, 1); a.gt(0)
a.eq(a); torch.lt(a, 0); torch.exp(a); torch.log(p); torch.sqrt(p); torch.sin(a)
a.cos(); a.tan(); a.tanh(); a.sigmoid(); torch.relu(a); a.abs(); a.neg(); a.square()
a.reciprocal(); p.rsqrt(); a.erf(); a.expm1(); p.log1p(); p.log2(); p.log10()
a.sinh(); a.cosh(); p.asin(); p.acos(); a.atan(); a.exp2(); p.lgamma(); p.digamma()
a.sign(); a.floor(); a.ceil(); a.round(); a.trunc(); a.frac(); p.logit(); torch.exp(i)
torch.sin(i); i.sqrt(); i.sigmoid(); i.abs(); i.float().log1p(); torch.atan2(a, b)
torch.maximum(a, b); torch.minimum(a, b); torch.fmod(a, p); torch.remainder(a, p)
torch.add(True, True); torch.sub(3, 1.5); torch.mul(2, 3); torch.div(1, 2)
torch.add(a > 0, True, alpha=2); torch.add(a.short(), b > 0, alpha=2)
torch.add(a, b, alpha=2); a.sub(b, alpha=0.5); a.mul(b); a.div(p)
a.div(p, rounding_mode='floor'); i.div(2, rounding_mode='trunc'); torch.pow(p, 2.5)
torch.pow(2, a); a.pow(3); p.pow(b); a.clamp(-0.5, 0.5); a.clamp(min=0)
a.clamp(max=0.2); torch.clip(a, 0, 1); a.clamp(b, p); torch.where(m, a, b)
torch.where(a > 0, a, 0.0); torch.where(m, 1.0, 0.0); torch.where(m)
torch.lerp(a, b, 0.3); torch.addcmul(a, b, p, value=2); torch.addcdiv(a, b, p)
torch.hypot(a, b); torch.logaddexp(a, b); torch.isnan(a); torch.isfinite(a)
torch.isinf(a); torch.logical_not(m); torch.logical_and(m, i); torch.allclose(a, a)
torch.equal(a, b); torch.isclose(a, b); torch.nan_to_num(a); a.erfinv()
torch.xlogy(p, p); a.sum(); a.sum(0); a.sum(1, keepdim=True); a.sum((0, 1)); i.sum()
m.sum(); a.sum(dim=-1); c.sum((0, 2)); a.sum(axis=0); a.mean(axis=1, keepdims=True)
a.mean(); a.mean(0); i.float().mean(); i.mean(); a.prod(); a.prod(0); i.prod()
a.var(); a.var(0); a.std(); a.std(1); a.std(0, unbiased=False); a.var(1, correction=0)
torch.var_mean(a, 0); torch.std_mean(a, 1); a.std(dim=1, keepdim=True); i.var()
a.max(); a.min(); a.max(0); a.min(1, keepdim=True); a.max(dim=1).values
torch.max(a, b); i.max(1); a.amax(0); a.amin((0, 1)); a.argmax(); a.argmax(1)
a.argmin(0, keepdim=True); a.max(1)[1]; torch.aminmax(a); a.norm(); a.norm(2, 1)
a.norm(p=1); a.norm(float('inf')); a.norm(dim=0, keepdim=True); m.all(); m.any(0)
i.all(1); a.logsumexp(1); a.softmax(1); a.softmax(-1); a.log_softmax(0)
torch.softmax(a, dim=0); torch.cumsum(a, 0); a.cumprod(1); a.cummax(0); a.cummin(1)
i.cumsum(0); a.sort(); a.sort(0, descending=True); a.argsort(1); a.topk(2)
a.topk(2, 0, largest=False); a.kthvalue(2); a.median(); a.median(0)
a.flatten().median(); i.unique(); i.unique(return_counts=True); torch.bincount(k)
a.quantile(0.3); a.quantile(0.5, dim=1); i.count_nonzero(); a.logcumsumexp(0)
i.mode(1); torch.unique_consecutive(k); torch.dist(a, b)
torch.histc(p.detach(), 5, 0, 1); a.view(4, 3); a.view(-1); a.view(2, -1)
a.reshape(6, 2); a.reshape(-1); a.t(); a.T; c.mT; a.view(5, 5); c.transpose(0, 1)
c.transpose(-1, -2); c.permute(2, 0, 1); c.permute((1, 2, 0)); c.flatten()
c.flatten(1); c.transpose(0, 2).view(-1); c.transpose(0, 2).reshape(-1)
c.transpose(0, 2).contiguous().view(-1); a.unsqueeze(0); a.unsqueeze(-1)
a.unsqueeze(0).squeeze(0); a.squeeze(); a.unsqueeze(1).squeeze(); v.expand(3, 4)
v.expand(2, -1); a.expand_as(c); a.repeat(2, 1); a.repeat(2, 1, 1); v.tile(3)
a.repeat_interleave(2); a.repeat_interleave(2, 0); a.repeat_interleave(k, dim=0)
a.flip(0); a.flip((0, 1)); a.roll(1, 0); a.roll(2); a.roll((1, 1), (0, 1)); a.tril()
a.triu(1); q.diag(); v.diag(); q.diagonal(1); torch.diag_embed(v); a.narrow(1, 1, 2)
a.select(0, 1); a.unbind(0); a.chunk(2, 1); a.split(2); a.split([1, 3], 1)
torch.cat([a, b]); torch.cat((a, b), dim=1); torch.cat([a, i]); torch.stack([a, b])
torch.stack([a, b], -1); torch.cat([a, v]); torch.hstack([a, b]); torch.vstack([a, v])
torch.meshgrid(v, v, indexing='ij'); torch.meshgrid(v, k, indexing='ij')
c.movedim(0, 2); a.swapaxes(0, 1); v.unflatten(0, (2, 2))
torch.broadcast_to(v, (3, 4)); torch.tensor_split(v, 3); a.rot90(); a.unfold(1, 2, 1)
torch.atleast_2d(v); torch.cartesian_prod(k, k); torch.combinations(k); a[0]; a[-1]
a[0, 1]; a[:, 1]; a[1:, ::2]; a[..., 0]; a[None]; a[:, None]; a[k]; a[k, k]; a[i]
a[m]; a[a > 0]; a[k, :2]; a[:, k]; a[[0, 2]]; a[torch.tensor(1)]; a[True]; a[m[:, 0]]
c[:, k, 1]; c[0, ..., 1]; a[5]; a[0, 0, 0]; s[0]; a[:, [True, False, True, False]]
v[i]; a[0][1]; a[k.long(), torch.tensor([0, 1, 2])]; a.gather(1, i)
torch.gather(a, 0, i); a.index_select(0, k); a.index_select(1, k)
a.masked_fill(m, 0.0); a.masked_fill(m, float('-inf')).softmax(1); a.masked_select(m)
a.take_along_dim(i, 1); torch.take(a, i); a.scatter(0, k.view(3, 1).expand(3, 4), b)
torch.zeros(3, 4).scatter(1, i, 1.0); torch.zeros(3, 4).scatter_add(1, i, a)
a.index_add(0, k, b); a.index_fill(0, k, 3.0); a.index_copy(0, k, b); torch.nonzero(m)
m.nonzero(as_tuple=True); torch.searchsorted(torch.tensor([0.1, 0.5]), p.detach())
torch.bucketize(i, torch.tensor([0, 1])); torch.isin(i, k); a @ b.T; a @ v; v @ v
c @ q; torch.matmul(c, v); torch.mm(a, b.t()); torch.bmm(c, c.mT); torch.mv(a, v)
v.dot(v); torch.einsum('ij,kj->ik', a, b); torch.einsum('bij,jk->bik', c, q)
torch.outer(v, v); torch.tensordot(a, b, 2); torch.addmm(v, a, q)
torch.baddbmm(c, torch.ones(2, 3, 5), torch.ones(2, 5, 4), alpha=2); torch.trace(q)
torch.kron(v, v); torch.cross(a[:, :3], b[:, :3], dim=1); torch.cdist(a, b)
torch.cdist(a.repeat(9, 1), b); torch.cdist(a, torch.cat([b[1:]] * 20))
torch.cdist(a, b, compute_mode='use_mm_for_euclid_dist'); torch.cdist(a, b[:, :2])
torch.cdist(a, b, 1.5); torch.cdist(a, b, -1); torch.cdist(a, b, compute_mode='no')
torch.cdist(v, v); a.repeat(400, 2).gather(1, i.repeat(400, 2))
a.repeat(400, 2).gather(0, i.repeat(400, 2))
a.repeat(400, 2).scatter(0, torch.arange(1200).flip(0)[:, None].repeat(1, 8), b[:1, :1])
a.repeat(400, 1).scatter(0, torch.arange(1200)[:, None].repeat(1, 4), b.repeat(400, 1))
a.repeat(400, 2).scatter_add(1, i.repeat(400, 2), b.repeat(400, 2))
a.repeat(1, 80)[k]; a.repeat(1, 80).index_select(0, k)
a.repeat(1, 80).index_add(0, k, b.repeat(1, 80)); c.repeat(1, 1, 70)[:, k]
a.repeat(40, 1)[:, [1, 1, 0]]; c.repeat(1, 40, 1)[:, :, [0, -1, 0]]
torch.mm(a, b); a @ b; torch.bmm(a, b); a.clone(); a.detach(); a.data; s.item()
a.item(); a.tolist(); a.size(); a.size(0); a.shape; a.dim(); a.ndim; a.numel()
a.float(); a.double(); a.long(); i.float(); m.int(); a.to(torch.float64)
a.type(torch.float64); a.to('cpu'); a.half(); a.bool(); i.type(); a.type()
a.type_as(i); a.dtype; a.is_floating_point(); a.requires_grad; a.is_leaf
(a + 1).is_leaf; len(a); len(s); a.new_zeros(2, 3); a.new_ones((2,))
a.new_full((2,), 3); a.new_tensor([1, 2]); i.new_zeros(2); a.element_size()
a.stride(); torch.zeros(2, 3); torch.ones(2); torch.full((2, 2), 3.5)
torch.full((2,), 3); torch.arange(5); torch.arange(1, 2, 0.25)
torch.arange(5, dtype=torch.float32); torch.linspace(0, 1, 5); torch.eye(3)
torch.eye(2, 3); torch.zeros_like(i); torch.ones_like(a); torch.full_like(a, 2.0)
torch.tensor([1, 2]); torch.tensor([1.0, 2]); torch.tensor([True]); torch.tensor(3)
torch.tensor([[1, 2], [3, 4]], dtype=torch.float64); torch.tensor([])
torch.tensor(2.5); torch.as_tensor([1, 2]); torch.tensor([a[0, 0].item(), 1])
torch.tril_indices(3, 3); torch.triu_indices(2, 3); torch.zeros((2, 0))
torch.arange(0); torch.tensor(1j); torch.logspace(0, 2, 3); a.isnan().any()
bool(s > 1); float(s.detach()); int(s); bool(a); format(s, '.2f'); a.sum().item() + 1
round(s.item(), 1); s in a; a.sum(3); a.unsqueeze(4); a.transpose(0, 2)
torch.ones(3) + torch.ones(4); a.view(7); a.expand(2, 2); torch.stack([a, v])
a.squeeze(5); torch.tensor([1, 2], requires_grad=True); a.backward()
torch.ones(2).sum().backward(); a.numpy(); a.chunk(0); torch.arange(1, 0); a.topk(9)
a.softmax(5); torch.zeros(-1); i.requires_grad_();
torch.device('tpu'); a.gather(1, k); torch.finfo(torch.float32).eps
torch.is_tensor(a); torch.promote_types(torch.int32, torch.float32)
torch.result_type(i, 1.0); torch.iinfo(torch.int32).max; a.nonexistent; torch.conj(a)
torch.real(a); a.angle(); torch.complex(a, b).abs(); torch.complex(a, b).real
(a + 1j * b).imag; torch.zeros(2, foo=1); torch.arange(6, out=torch.zeros(6))
torch.ones(2, 2, out=torch.empty(0)); torch.randn(2, foo=1)
torch.full_like(a, fill_value=2.0); torch.linalg.inv(q, out=torch.empty(0))
torch.sum(a, 0, out=torch.empty(4))
torch.linalg.inv(q.detach(), out=torch.empty(0)); torch.linalg.vander(v)
torch.add(a.detach(), 1, alpha=2, out=torch.empty(0)); torch.exp(a, out=torch.empty(0))
torch.mm(q.detach(), q.detach(), out=torch.empty(4, 4)); torch.exp(k, out=k)
torch.max(a.detach(), 0, out=(torch.empty(0), torch.empty(0, dtype=torch.int64)))
torch.where(m, a.detach(), a.detach(), out=torch.empty(0))
torch.arange(0, 4, 1.5, out=torch.empty(0, dtype=torch.int64))
torch.maximum(a.detach(), b.detach(), out=torch.zeros(3, 4, dtype=torch.float64))
torch.mul(k, 2, out=torch.zeros(3, requires_grad=True))
torch.linalg.matrix_norm(a * 0, 2); torch.linalg.norm(a * 0, 'nuc')
torch.linalg.svd(a)[2][..., :3, :].abs(); torch.linalg.svd(a)[1]
torch.linalg.inv_ex(q)
torch.linalg.tensorinv(q.reshape(2, 2, 4)); torch.cholesky_solve(v[:, None], q.tril())
a.where(a > 0, b); a.flip(dims=(0,)); s.sum(0); s.softmax(0)
s.log_softmax(0); s.logcumsumexp(0)
s.logsumexp(0); s.norm(dim=-1); a.amax(()); torch.quantile(a, s.detach() / 2, dim=1)
torch.zeros(0, 3).amax(0); torch.zeros(0).softmax(0); s.gather(0, k[:1].view(()) * 0)
s.unfold(0, 1, 1); a.narrow(1, 5, 1); a.tril(7)
v.tril(); torch.atan2(a, 2.0); torch.maximum(a, 1); torch.logical_and(m, True)
torch.eq(1, a); torch.isclose(a, b, rtol=-1); -m; a.roll((), 0); a.roll((1, 2), 0)
s.unbind(); torch.cat([]); torch.cat([a, None]); v.fliplr()
torch.cat([s, s]); torch.cat([a, a], 5); torch.cat([v, a]); torch.stack([a], 4)
a.clamp(1); i.clamp(min=1); a.clamp(2, -2); torch.where(m, a, b.double())
torch.where(m, a, v[:3]); a.max(0, keepdim=True); c.max(1); c.min(-1); a.max(4)
torch.arange(1, 2, 0); torch.linspace(0, 1, -1); torch.eye(-1); a.diag_embed(0, 1, 1)
torch.linalg.eigvals(q).dtype; torch.linalg.matrix_rank(q, atol=0.5)
torch.linalg.eigvalsh(q); torch.linalg.pinv(a, rtol=0.5)
torch.bincount(k, v[:3].detach())
a.masked_fill(m, v); a.masked_fill(m, 1j); a.scatter(0, i * 9, b); a.scatter(0, i, k)
i.unique_consecutive(dim=0); torch.einsum(a, [0, 1], b, [2, 1], [0, 2]); v.hsplit(2)
torch.bucketize(i, k.sort()[0], out_int32=True); a.diff(); a.diff(dim=0, n=2); a.cov()
a.corrcoef(); a.nanmedian(); a.nanmedian(1); a.nanquantile(0.3, 0); a.msort()
a.renorm(2, 0, 0.5); a.put(k, v[:3]); v.diagflat(); v.ldexp(k[0]); p.frexp()
a.scatter_reduce(1, i, b, 'mean'); a.scatter_reduce(0, i, b, 'amax')
a.scatter_reduce(1, i, p, 'prod', include_self=False)
torch.polar(p, a); a.diagonal_scatter(v[:3]); torch.gradient(a)
torch.cumulative_trapezoid(a); a.sum_to_size(4)
torch.histogram(p.detach(), 4); torch.broadcast_shapes((2, 1), (3,))
a.split_with_sizes([1, 2]);
torch.fft.fft(a); torch.fft.rfft(v); torch.fft.ifft2(a); torch.fft.hfft(a)
torch.fft.ihfftn(a); torch.fft.fftshift(a); torch.fft.rfftfreq(5); torch.fft.fft(s)
torch.signal.windows.hann(5); torch.signal.windows.kaiser(6, beta=3.0, sym=False)
torch.arange(0, 4, 1.5, dtype=torch.int64)
torch.linspace(-3, 4, 6, dtype=torch.int64); torch.trapz(k); torch.nansum(k)
torch.gradient(k); torch.ldexp(k, k); m.sign()
k.addmv(i[:, :3], k, beta=0.5, alpha=2.5)
torch.nn.functional.relu6(k); m.scatter_reduce(0, i, m, 'amax', include_self=False)
torch.signal.windows.gaussian(5, std=-1); torch.nextafter(a.detach(), b.detach())
torch.complex(a, b).mH * 1; torch.complex(a, b).H * 1; a.adjoint(); a.H; c.H
torch.adjoint(torch.complex(a, b)) * 1; torch.complex(a, b).cov()
torch.complex(a, b).svd()[1]
m - m; m - 1; 1 - m; a - m; torch.rsub(m, 1); a[::-1]; a[:, ::-1]
a[torch.tensor(0)::2]; torch.empty(0).median(); torch.tensor(3.).median(0)
torch.tensor([float('nan'), 1., 3.]).median(); i.sign()
torch.tensor([[float('nan'), 1., 3.], [1., 2., 0.]]).median(0)
torch.sign(torch.tensor([float('nan'), -3])); torch.sgn(torch.tensor([float('nan'), 3]))
torch.tensor([float('nan'), -3]).sign_(); i.sum(dtype=torch.int32); m.all(1)
i.int().cumsum(0, dtype=torch.int32); i.prod(0, dtype=torch.int16); i.byte().any(0)
torch.heaviside(i, k[:1]); torch.tril_indices(3, 3, dtype=torch.int32)
torch.complex(a, b).mH.resolve_conj(); torch.complex(a, b).adjoint().resolve_conj()
torch.complex(a, b).H.resolve_conj(); torch.float_power(torch.complex(a, b), 2)
torch.addbmm(i[:3, :3].int(), c.int(), c.mT.int())
torch.unravel_index(i.byte(), (2, 3)); torch.vander(v.detach(), 3); torch.adjoint(c)
torch.max(a, other=b); a.nanmean(0)
torch.tensor_split(a, sections=2, dim=1); torch.hsplit(a, indices=[1]); a.is_conj()
torch.repeat_interleave(torch.tensor([1, 2, 0])); torch.can_cast(torch.int8, torch.bool)
torch.frombuffer(bytearray(8), dtype=torch.float32); torch.embedding(q, k)
torch.hann_window(5); torch.hamming_window(6, False, 0.5, 0.5); torch.kaiser_window(7)
torch.blackman_window(7, periodic=False); torch.bartlett_window(4); a.hardshrink(0.3)
torch.result_type(tensor=k, other=2.5); torch.randint(high=5, size=(3,)).shape
torch.norm_except_dim(q, 2, 0)
a.new(a.size()).shape; a.new(2, 3).shape; a.new([1.0, 2.0]); a.view(4.0, 3)
torch.ones(3).map_(torch.ones(3), lambda x, y: x + y); torch.typename(a)
"""
SOURCES = [e.strip() for e in EXPRESSIONS.replace("\n", ";").split(";") if e.strip()]


@pytest.mark.parametrize("source", SOURCES)
def test_an_expression_means_the_same(source):
    assert_equivalent(source)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize(
    "index", ["[[0, 1], [1, 2]]", "[None, 0]", "[..., 0]", "[0, slice(1, 3)]"]
)
def test_a_list_of_parts_is_an_index_of_several_axes(index):
    assert_equivalent(f"a[{index}]")


@pytest.mark.parametrize(
    "index",
    """0, :, [1, 2]; -1, ..., [1, 2]; 0, None, [1, 2]; [0, 1], :, 0; :, 0, :, [0, 1]
    torch.tensor(0), :, [1, 2]; 0, :, torch.tensor([True, False, True, False])
    0, None, 0, [1, 2]; 1:, 0, 1:, [1, 2]; [0, 1], 0, :, [1, 2]; :, [0, 1], 0
    True, :, 0, [1]; 0, True, [1, 2]; 0, [[0, 1], [1, 2]], :, 1""".replace(
        "\n", ";"
    ).split(";"),
)
def test_a_number_takes_its_axis_before_positions_are_looked_at(index):
    """NumPy takes it for a position, and their axis comes first."""

    def read_and_written(torch):
        x = torch.arange(240.0).reshape(2, 3, 4, 10).sin().requires_grad_()
        y = eval(f"x[..., :4][{index}]")
        written = x * 2
        exec(f"written[..., :4][{index}] = y.detach() + 1")
        (y.exp().sum() + (written * x).sum()).backward()
        return y, written, x.grad

    assert_same_scenario(read_and_written)


@pytest.mark.parametrize("kind", ["uint8", "int8", "int64"])
@pytest.mark.parametrize("number", [300, -1, 2.7, float("nan"), float("inf"), 1j, 1e30])
def test_a_number_is_written_to_whole_numbers_as_by_pytorch(kind, number):
    def written(torch):
        x = torch.zeros(3, dtype=getattr(torch, kind))
        x[0] = number
        x[torch.tensor([True, False, True])] = number
        return x

    assert_same_scenario(written)


@pytest.mark.parametrize(
    "source",
    """v.index_select(0, torch.tensor([-1])); v.gather(0, torch.tensor([-1]))
    v.scatter(0, torch.tensor([-1]), 2.0); a.index_select(0, torch.tensor([[0]]))
    v.scatter_add(0, torch.tensor([-1]), v[:1]); v.take(torch.tensor([-1]))
    v.index_fill(0, torch.tensor([-1]), 1.0); v.index_add(0, torch.tensor([-1]), v[:1])
    v.take_along_dim(torch.tensor([-1]), 0)""".replace("\n", ";").split(";"),
)
def test_positions_below_0_are_refused_where_pytorch_refuses_them(source):
    assert_equivalent(source.strip())


LINEAR_ALGEBRA = """
torch.linalg.inv(q); torch.linalg.det(q); torch.linalg.slogdet(q)
torch.linalg.solve(q, v); torch.linalg.solve(q, q.T)
torch.linalg.cholesky(q @ q.T + torch.eye(4)); torch.linalg.eigvalsh(q + q.T)
torch.linalg.svdvals(a); torch.linalg.norm(a); torch.linalg.norm(v, 1)
torch.linalg.norm(a, dim=1); torch.linalg.matrix_norm(a, 1); torch.linalg.pinv(a)
torch.linalg.matrix_power(q, 2); torch.linalg.matrix_rank(q)
torch.linalg.vector_norm(a, 3); torch.linalg.inv(a); q.inverse(); q.det()
torch.linalg.multi_dot([a, q, q]); torch.matrix_exp(q * 0.1)
torch.linalg.eigh(q + q.T)[0]; torch.linalg.qr(q)[1].abs()
torch.linalg.svd(a, full_matrices=False)[1]; torch.linalg.lstsq(a.T, v).solution
torch.linalg.cholesky(torch.complex(torch.eye(4) * 9 + q + q.T, q - q.T))
torch.linalg.eigvalsh(torch.complex(q, q.flip(0)))
torch.linalg.eigvalsh(torch.complex(q, q.flip(0)), UPLO='U')
torch.cholesky_inverse(torch.complex(q.tril() + torch.eye(4) * 3, q.tril(-1)))
torch.cholesky_solve(v[:, None] + 0j, torch.complex(q + torch.eye(4) * 3, q).tril())
torch.linalg.svd(torch.complex(a, b), full_matrices=False)[1]
torch.linalg.pinv(torch.complex(q + q.T, q - q.T), hermitian=True)
"""
SOURCES_OF_MATRICES = [
    e.strip() for e in LINEAR_ALGEBRA.replace("\n", ";").split(";") if e.strip()
]


@pytest.mark.parametrize("source", SOURCES_OF_MATRICES)
def test_linear_algebra_means_the_same(source):
    assert_equivalent(source, rtol=1e-3, atol=1e-4)


OF_SCIPY = """
torch.special.i0(a); torch.special.entr(p); torch.special.ndtr(a); p.polygamma(1)
torch.special.xlog1py(p, p); torch.special.erfcx(p); torch.special.log_ndtr(a)
torch.special.bessel_j1(a.detach()); torch.special.hermite_polynomial_h(a, k[0])
torch.mvlgamma(p + 3, 2); p.detach().igamma(p); torch.special.ndtri(p)
"""


@pytest.mark.parametrize("source", OF_SCIPY.replace("\n", ";").strip("; ").split("; "))
def test_a_special_function_means_the_same(source):
    pytest.importorskip("scipy", reason="the special functions are SciPy's")
    for part in filter(None, source.split(";")):
        assert_equivalent(part)
