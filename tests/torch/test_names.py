"""The names that training code uses most: that they are here, and their arguments."""

import importlib
import inspect

import pytest

import lantern.torch as ours
from lantern.torch.functions.table import FUNCTIONS, names_with
from tests.torch.compared import assert_equivalent

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")

TENSORS = """
tensor zeros load no_grad save from_numpy manual_seed ones randn arange rand
zeros_like empty ones_like is_tensor full randperm eye as_tensor randint linspace
set_grad_enabled multinomial randn_like full_like normal empty_like inference_mode
shape to item device data size backward numpy cuda cpu type detach dtype float dim
clone grad requires_grad ndim long numel requires_grad_ contiguous tolist type_as bool
double int register_hook view cat stack reshape flatten chunk transpose unsqueeze
squeeze split permute nonzero where masked_fill gather repeat expand index_select t
scatter_ T unbind expand_as view_as meshgrid flip repeat_interleave __getitem__
__setitem__ exp sigmoid log clamp sqrt abs tanh pow mul add sin cos div isnan round eq
allclose floor relu softmax log_softmax clip sub sign isfinite equal erf gt lt rsqrt
maximum minimum neg square max sum mean min matmul argmax bmm norm mm topk sort einsum
diag std triu tril dot unique cumsum prod var inverse addmm logsumexp argsort all any
fill_ copy_ new_zeros add_ mul_ uniform_ normal_ zero_ random_ rand_like bernoulli
tril_indices set_default_dtype enable_grad is_grad_enabled is_leaf retain_grad grad_fn
detach_ half is_contiguous element_size stride mT unflatten tile hstack vstack roll
movedim swapaxes narrow select unfold ravel broadcast_to scatter_add_ index_add_
take_along_dim masked_fill_ masked_select log1p log2 log10 expm1 reciprocal ceil trunc
tan asin acos atan atan2 sinh cosh erfinv lgamma digamma fmod remainder lerp isinf ne
le ge logical_and logical_or logical_not isclose nan_to_num amax amin argmin cumprod
median bincount mv outer tensordot baddbmm cross trace diagonal kron cdist det sub_
div_ clamp_ bernoulli_ addcmul_ addcdiv_ lerp_ new_ones new_full new_tensor new_empty
""".split()
PARTS = {
    "nn": """
        Module Linear Sequential ModuleList Parameter Embedding Identity Flatten
        ModuleDict Conv2d BatchNorm2d Dropout MaxPool2d BatchNorm1d
        AdaptiveAvgPool2d AvgPool2d ConvTranspose2d Conv1d LayerNorm Upsample
        Dropout2d GroupNorm InstanceNorm2d ReflectionPad2d ZeroPad2d PixelShuffle
        RMSNorm ReLU Sigmoid LeakyReLU Softmax Tanh LogSoftmax GELU ELU SiLU LSTM
        GRU LSTMCell GRUCell MultiheadAttention CrossEntropyLoss MSELoss BCELoss
        BCEWithLogitsLoss L1Loss NLLLoss SmoothL1Loss
        """,
    "nn.functional": """
        relu mse_loss pad avg_pool2d softmax log_softmax cross_entropy max_pool2d
        scaled_dot_product_attention normalize interpolate nll_loss sigmoid conv2d
        layer_norm linear gelu adaptive_avg_pool2d dropout l1_loss embedding silu
        softplus smooth_l1_loss binary_cross_entropy
        binary_cross_entropy_with_logits one_hot leaky_relu tanh elu batch_norm
        group_norm conv1d conv_transpose2d cosine_similarity unfold grid_sample
        gumbel_softmax kl_div ctc_loss
        """,
    "nn.init": """
        normal_ constant_ orthogonal_ zeros_ trunc_normal_ uniform_ ones_
        xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_
        calculate_gain
        """,
    "nn.utils": """
        clip_grad_norm_ clip_grad_value_ parameters_to_vector vector_to_parameters
        """,
    "nn.utils.rnn": "pack_padded_sequence pad_packed_sequence pad_sequence",
    "nn.Module": """
        parameters named_parameters buffers register_buffer register_parameter
        add_module children named_modules apply train eval zero_grad to cuda cpu
        float half state_dict load_state_dict requires_grad_ register_forward_hook
        register_forward_pre_hook register_full_backward_hook extra_repr
        """,
    "optim": "Adam SGD AdamW RMSprop Adagrad Adadelta RAdam LBFGS Optimizer",
    "optim.Optimizer": "step zero_grad add_param_group state_dict load_state_dict",
    "optim.lr_scheduler": """
        LambdaLR StepLR MultiStepLR ExponentialLR CosineAnnealingLR OneCycleLR
        ReduceLROnPlateau
        """,
    "utils.data": "DataLoader Dataset TensorDataset RandomSampler random_split",
    "autograd": "grad backward Function",
    "autograd.functional": "jacobian hessian vjp jvp vhp hvp",
    "func": """
        grad grad_and_value vjp jvp jacrev jacfwd hessian vmap linearize
        functional_call stack_module_state
        """,
    "linalg": """
        norm inv det slogdet solve cholesky qr svd eigh eigvalsh lstsq pinv
        matrix_rank
        """,
}
NAMES = [(part, name) for part, names in PARTS.items() for name in names.split()]
# A default of PyTorch's own, and an argument that none of its users gives.
EXCEPT = {"generator", "grad_variables", "_preallocate_and_copy"}


def found(torch, part):
    place = torch
    for word in part.split("."):
        if not hasattr(place, word):
            return importlib.import_module(f"{torch.__name__}.{part}")
        place = getattr(place, word)
    return place


@pytest.mark.parametrize("name", TENSORS)
def test_a_name_is_where_pytorch_has_it(name):
    if hasattr(theirs, name) and name not in ("cpu", "detach_"):  # a module; a method
        assert hasattr(ours, name)
    if hasattr(theirs.Tensor, name):
        assert hasattr(ours.Tensor, name)


def parameters(thing):
    """The names of arguments in their order, with their defaults."""
    if inspect.isclass(thing) and not hasattr(thing, "__signature__"):
        thing = thing.__init__
    try:
        rows = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):  # of PyTorch's that are not written in Python
        return None
    return [p for p in rows if p.name not in ("self", "cls") and p.name not in EXCEPT]


@pytest.mark.parametrize(("part", "name"), NAMES, ids=[".".join(row) for row in NAMES])
def test_arguments_have_pytorchs_order_and_defaults(part, name):
    other, mine = (parameters(getattr(found(t, part), name)) for t in (theirs, ours))
    if other is None or mine is None:
        return
    by_name = {p.name: p for p in mine}
    rest = any(p.kind is p.VAR_KEYWORD for p in mine)
    for place, p in enumerate(other):
        if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            continue
        if p.name not in by_name:
            assert rest, p.name
            continue
        assert by_name[p.name].default == p.default or p.default is p.empty, p.name
        if p.kind is p.POSITIONAL_OR_KEYWORD:
            assert mine[place].name == p.name


KEYWORDS = """
torch.zeros(size=(2, 3)); torch.ones(2, 3, dtype=torch.int64); torch.full((2,), 1.5)
torch.arange(start=1, end=7, step=2); torch.linspace(start=0, end=1, steps=5)
torch.eye(n=3, m=2); torch.zeros_like(input=a); torch.full_like(a, fill_value=2)
torch.as_tensor(data=[1.0], dtype=torch.float64); torch.tensor(data=[1, 2])
torch.cat(tensors=(a, b), dim=1); torch.stack(tensors=[a, b], dim=0)
torch.cat([a, b], axis=0); torch.chunk(input=a, chunks=2, dim=1)
torch.split(tensor=a, split_size_or_sections=2, dim=1); a.split(split_size=2, dim=1)
torch.reshape(input=a, shape=(4, 3)); torch.flatten(input=c, start_dim=1, end_dim=2)
torch.transpose(input=a, dim0=0, dim1=1); torch.permute(input=c, dims=(2, 0, 1))
torch.unsqueeze(input=a, dim=0); torch.squeeze(input=a[None], dim=0)
torch.nonzero(input=i, as_tuple=True); torch.where(condition=m, input=a, other=b)
torch.gather(input=a, dim=0, index=i); torch.index_select(input=a, dim=0, index=k)
torch.masked_fill(input=a, mask=m, value=2.0); torch.flip(input=a, dims=(0,))
torch.repeat_interleave(input=a, repeats=2, dim=0); torch.unbind(input=a, dim=0)
torch.meshgrid(v, v, indexing='xy'); torch.clamp(input=a, min=-0.5, max=0.5)
torch.add(input=a, other=b, alpha=2); torch.sub(input=a, other=b, alpha=2)
torch.mul(input=a, other=b); torch.div(input=a, other=b, rounding_mode=None)
torch.pow(input=p, exponent=2); torch.round(input=a, decimals=1)
torch.allclose(input=a, other=a, rtol=1e-5, atol=1e-8, equal_nan=False)
torch.softmax(input=a, dim=1, dtype=torch.float64); torch.log_softmax(input=a, dim=0)
torch.maximum(input=a, other=b); torch.eq(input=a, other=b); torch.equal(a, other=b)
torch.max(input=a, dim=1, keepdim=True); torch.max(a, axis=1, keepdims=True)
torch.sum(input=a, dim=(0, 1), keepdim=True, dtype=torch.float64); a.sum(axis=0)
torch.mean(input=a, dim=0, keepdim=True); torch.argmax(input=a, dim=1, keepdim=True)
torch.std(input=a, dim=1, correction=0, keepdim=True); torch.std(a, 1, False)
torch.var(a, dim=1, unbiased=False); torch.prod(input=a, dim=1, keepdim=True)
torch.norm(input=a, p=2, dim=1, keepdim=True); torch.logsumexp(input=a, dim=(0, 1))
torch.topk(input=a, k=2, dim=1, largest=False, sorted=True); a.sort(descending=True)
torch.sort(input=a, dim=0, descending=True, stable=True); torch.argsort(a, dim=-1)
torch.cumsum(input=a, dim=1, dtype=torch.float64); torch.unique(input=i, sorted=True)
torch.unique(i, return_inverse=True, return_counts=True, dim=None)
torch.matmul(input=a, other=q); torch.mm(input=a, mat2=q); torch.mv(input=a, vec=v)
torch.bmm(input=c, mat2=c.mT); torch.dot(input=v, tensor=v); torch.outer(v, vec2=v)
torch.addmm(input=a, mat1=a, mat2=q, beta=2, alpha=3); torch.diag(input=v, diagonal=1)
torch.triu(input=a, diagonal=1); torch.tril(input=a, diagonal=-1)
torch.clone(input=a); torch.einsum('ij,kj->ik', a, b)
torch.all(input=m, dim=0, keepdim=True); torch.any(m); a.view(size=(4, 3))
a.expand(size=(2, 3, 4)); a.to(dtype=torch.float64, device='cpu', copy=True)
a.size(dim=1); a.clone().fill_(value=2); a.new_zeros(size=(2, 2))
a.new_full(size=(2,), fill_value=3.0); a.type_as(other=i)
torch.roll(input=a, shifts=1, dims=0); torch.movedim(input=c, source=0, destination=2)
torch.swapaxes(input=a, axis0=0, axis1=1)
torch.narrow(input=a, dim=1, start=1, length=2); torch.select(input=a, dim=0, index=1)
a.unfold(dimension=1, size=2, step=1); torch.take_along_dim(input=a, indices=i, dim=0)
torch.broadcast_to(input=v, size=(3, 4)); torch.lerp(input=a, end=b, weight=0.3)
torch.isclose(input=a, other=b, rtol=1, atol=1)
torch.nan_to_num(input=a, nan=0.0, posinf=1.0, neginf=-1.0); torch.amax(a, dim=1)
torch.median(input=a, dim=1, keepdim=True); torch.bincount(input=k, minlength=5)
torch.tensordot(a=a, b=b, dims=([1], [1]))
torch.cross(input=a[:, :3], other=q[:3, :3], dim=1)
torch.baddbmm(input=c[:, :, :3], batch1=c, batch2=c.mT, beta=0.5, alpha=2)
torch.diagonal(input=c, offset=0, dim1=1, dim2=2); torch.cdist(x1=a, x2=b, p=2.0)
torch.kron(input=a, other=b); torch.tile(input=v, dims=(2, 2)); v.tile((2,))
torch.randint(low=0, high=5, size=(2,)).shape; torch.randperm(n=5).shape
torch.multinomial(input=p.detach(), num_samples=2, replacement=True).shape
torch.normal(mean=0.0, std=1.0, size=(2, 3)).shape; p.detach().multinomial(1).shape
torch.linalg.solve(A=q, B=v); torch.linalg.svd(A=q, full_matrices=False)[1]
torch.linalg.inv(A=q); torch.add(a, 0.5, b); a.add(2, b); torch.sub(a, 2, b)
torch.addcmul(a, 2, b, p); torch.addcdiv(a, 2, b, p); a.clone().addcdiv_(2, b, p)
a.clone().addcmul_(-1, b, p); a.clone().add_(0.5, b); a.clone().sub_(2, b)
"""
SOURCES = [e.strip() for e in KEYWORDS.replace("\n", ";").split(";") if e.strip()]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("source", SOURCES)
def test_arguments_can_be_named(source):
    assert_equivalent(source, rtol=1e-3, atol=1e-4)


def test_what_the_table_says_of_functions_is_so():
    """And of PyTorch's: a name with an underscore is there only if it is there, too."""
    here, there = set(dir(ours.Tensor)), set(dir(theirs.Tensor))
    alone = {*names_with("function")}
    assert alone & here == {"gradient"}  # another one, which transforms ask for
    assert alone <= FUNCTIONS.keys()
    methods = {f"{name}_" for name in names_with("method_")}
    assert methods <= here & there
    functions = {f"{name}_" for name in names_with("function_")}
    assert functions <= {*dir(ours)} & {*dir(theirs)}
    assert {name for name in names_with("single") if not hasattr(ours, name)} == set()
