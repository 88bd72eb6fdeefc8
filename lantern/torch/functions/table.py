"""The table of functions, and what is known of them besides what they compute."""

from functools import wraps
from typing import Any

from lantern.torch import linalg
from lantern.torch.functions import (
    comparison,
    copies_splits,
    elementwise,
    indexing,
    join_repeat,
    limits,
    products,
    reduction,
    scatter,
    scatter_reduce,
    shares,
    sorting_scans,
    statistics,
)
from lantern.torch.functions import shape as shaping
from lantern.torch.linalg import deprecated, low_rank
from lantern.torch.tables import another, parameters, takes
from lantern.torch.tensor.error_messages import refuse_type
from lantern.torch.tensor.halves import single
from lantern.torch.tensor.tensor import Tensor

# What is known of a function besides what it computes:
# function   it is no method of tensors
# method_    a method of that name writes its result in place: x.abs_()
# function_  so does a function: torch.abs_(x)
# single     it adds up, and computes float16 in float32
# real       it asks which number is greater, or is of real numbers otherwise
_TABLE = """
abs                   method_ function_
absolute              method_
acos                  method_ function_
acosh                 method_ function_
addbmm                method_ single
addcdiv               method_ single
addcmul               method_ single
addmm                 method_ single
addmv                 method_ single
addr                  method_ single
alias_copy            function
arccos                method_ function_
arccosh               method_ function_
arcsin                method_ function_
arcsinh               method_ function_
arctan                method_ function_
arctan2               method_
arctanh               method_ function_
argsort               real
asin                  method_ function_
asinh                 method_ function_
atan                  method_ function_
atan2                 method_
atanh                 method_ function_
atleast_1d            function
atleast_2d            function
atleast_3d            function
baddbmm               method_ single
bitwise_and           method_
bitwise_left_shift    method_
bitwise_not           method_
bitwise_or            method_
bitwise_right_shift   method_
bitwise_xor           method_
block_diag            function
broadcast_shapes      function
broadcast_tensors     function
bucketize             function real
cartesian_prod        function
cat                   function
cdist                 function single
ceil                  method_ function_
chain_matmul          function single
clamp                 method_ function_
clamp_max             method_ function_
clamp_min             method_ function_
clip                  method_ function_
column_stack          function
combinations          function
concat                function
concatenate           function
conj_physical         method_ function_
copysign              method_
corrcoef              single
cos                   method_ function_
cosh                  method_ function_
cov                   single
cummax                single real
cummin                single real
cumprod               method_ single
cumsum                method_ single
cumulative_trapezoid  function single
deg2rad               method_ function_ real
digamma               method_ real
dist                  single
div                   method_
divide                method_
dstack                function
einsum                function single
eq                    method_
erf                   method_ function_
erfc                  method_ function_
erfinv                method_
exp                   method_ function_
exp2                  method_ function_
expit                 function
expm1                 method_ function_
fill                  function_
fix                   method_ function_
float_power           method_
floor                 method_ function_
floor_divide          method_ real
fmax                  real
fmin                  real
fmod                  method_
frac                  method_ function_ real
frexp                 single
gcd                   method_ function_ real
ge                    method_
gradient              function single
greater               method_
greater_equal         method_
gt                    method_
heaviside             method_ real
histc                 real
histogram             function real
hstack                function
hypot                 method_
i0                    method_ function_
igamma                method_ single
igammac               method_ single
index_add             method_
index_copy            method_
index_fill            method_
index_put             method_ function_
index_reduce          method_
inner                 single
isin                  function
isneginf              real
isposinf              real
kron                  single
lcm                   method_ function_ real
ldexp                 method_ function_ single
le                    method_
lerp                  method_ single
less                  method_
less_equal            method_
lgamma                method_ real
log                   method_ function_
log10                 method_ function_
log1p                 method_ function_
log2                  method_ function_
logcumsumexp          single
logical_and           method_
logical_not           method_
logical_or            method_
logical_xor           method_
logit                 method_ function_
logsumexp             single
lt                    method_
masked_fill           method_
masked_scatter        method_
matrix_power          single
meshgrid              function
msort                 real
multiply              method_
mvlgamma              method_ single
nan_to_num            method_ function_
nanmean               single
nansum                single
ne                    method_
neg                   method_ function_
negative              method_ function_
nextafter             method_ real
norm                  single
not_equal             method_
polar                 function
polygamma             method_ real
pow                   method_
prod                  single
put                   method_
rad2deg               method_ function_ real
reciprocal            method_ function_
relu                  method_ function_
remainder             method_
renorm                method_ single
repeat                single
resize_as             function_
round                 method_ function_
row_stack             function
rsqrt                 method_ function_
rsub                  function
scatter               method_
scatter_add           method_
scatter_reduce        method_
searchsorted          function real
sgn                   method_
sigmoid               method_ function_
sign                  method_
signbit               real
sin                   method_ function_
sinc                  method_ function_ single
sinh                  method_ function_
sort                  real
sqrt                  method_ function_
square                method_ function_
stack                 function
std                   single
std_mean              single
subtract              method_
tan                   method_ function_
tanh                  method_ function_
tensordot             function single
tile                  single
topk                  real
trace                 single
trapezoid             single
trapz                 function single
tril                  method_
triu                  method_
true_divide           method_
trunc                 method_ function_
unravel_index         function
var                   single
var_mean              single
vdot                  single
view_as_complex       function
view_as_real          function
vstack                function
xlogy                 method_ function_ single
zero                  function_
"""
_ROWS = {name: known for name, *known in map(str.split, _TABLE.split("\n")[1:-1])}


def names_with(known: str) -> list[str]:
    """The names of functions of which something is known: see the table."""
    return [name for name, row in _ROWS.items() if known in row]


def complete(functions: dict[str, Any]) -> dict[str, Any]:
    """Functions as programs call them: by NumPy's names of options, with any type."""
    found = {name: reduction.also_axis(f) for name, f in functions.items()}
    # Around the other one: whoever adds up in float32 hands every option on as it is.
    for name in names_with("single"):
        if name in found:
            found[name] = single(found[name], whole=name != "logcumsumexp")
    for name in names_with("real"):
        if name in found:
            found[name] = _of_reals(found[name])
    for name, f in found.items():  # less, which is lt, is a function of its own name
        if getattr(f, "__name__", name) != name:
            found[name] = another(f, name)
    return found


def _of_reals(function: Any) -> Any:
    """A function that refuses complex numbers, which have no order."""

    @wraps(function)
    def operate(*args: Any, **options: Any) -> Any:
        for x in args:
            if isinstance(x, Tensor) and x.primal.dtype.kind == "c":
                raise refuse_type(function.__name__, x)
        return function(*args, **options)

    return operate


def _of_input(function: Any) -> Any:
    """A function of a matrix A, which ``torch`` and tensors call ``input``."""

    def operate(input: Any, *args: Any, **options: Any) -> Any:
        return function(input, *args, **options)

    operate.__name__ = operate.__qualname__ = function.__name__
    operate.__doc__ = function.__doc__
    return takes(operate, parameters(function, "input"))


_functions: dict[str, Any] = {
    name: getattr(linalg, name) for name in ("cholesky_inverse", "cholesky_solve")
}
_functions |= deprecated.functions | low_rank.functions
_functions |= {
    name: _of_input(getattr(linalg, known))
    for name, known in (
        ("det", "det"),
        ("inverse", "inv"),
        ("matrix_exp", "matrix_exp"),
        ("matrix_power", "matrix_power"),
        ("pinverse", "pinv"),
        ("slogdet", "slogdet"),
    )
}
for _part in (
    comparison,
    elementwise,
    limits,
    reduction,
    shares,
    sorting_scans,
    shaping,
    join_repeat,
    indexing,
    products,
    copies_splits,
    scatter,
    scatter_reduce,
    statistics,
):
    _functions |= _part.functions

FUNCTIONS = complete(_functions)
