# Made by python -m tests.checkers.stubs, from what there is at run time.
from builtins import float as _float
from builtins import int as _int
from lantern import array_api as array_api
from lantern import batching as batching
from lantern import cps as cps
from lantern import debugger as debugger
from lantern import distributed as distributed
from lantern import effects as effects
from lantern import engines as engines
from lantern import errors as errors
from lantern import fft as fft
from lantern import linalg as linalg
from lantern import models as models
from lantern import onnx as onnx
from lantern import op as op
from lantern import random as random
from lantern import scipy as scipy
from lantern import staging as staging
from lantern import testing as testing
from lantern import torch as torch
from lantern import viz as viz
from lantern.batching.verbs import batch as batch
from lantern.batching.verbs import batched as batched
from lantern.batching.verbs import fork as fork
from lantern.control.bracket import both_ways as both_ways
from lantern.control.bracket import bracket as bracket
from lantern.control.bracket import early_exit as early_exit
from lantern.control.bracket import with_answer as with_answer
from lantern.control.checkpoint import checkpoint as checkpoint
from lantern.control.checkpoint import checkpoint as remat
from lantern.control.checkpoint import remat_loop as remat_loop
from lantern.control.hooks import hook as hook
from lantern.control.hooks import nestlevel as nestlevel
from lantern.control.no_grad import no_grad as no_grad
from lantern.control.program import Program as Program
from lantern.control.program import pause as pause
from lantern.control.progress import progress as progress
from lantern.core.namespace import register_namespace as register_namespace
from lantern.core.tree import is_leaf as is_leaf
from lantern.core.tree import register_tree as register_tree
from lantern.core.tree import tree_leaves as tree_leaves
from lantern.core.tree import tree_map as tree_map
from lantern.core.tree import tree_paths as tree_paths
from lantern.core.tree import tree_structure as tree_structure
from lantern.debugging.backward_steps import backward_steps as backward_steps
from lantern.debugging.debug import debug as debug
from lantern.debugging.tracebacks import full_tracebacks as full_tracebacks
from lantern.errors import AlreadyResumedError as AlreadyResumedError
from lantern.errors import AnomalyError as AnomalyError
from lantern.errors import ArgumentError as ArgumentError
from lantern.errors import BatchedValueError as BatchedValueError
from lantern.errors import ConvergenceError as ConvergenceError
from lantern.errors import DetachError as DetachError
from lantern.errors import DeviceError as DeviceError
from lantern.errors import DistributedError as DistributedError
from lantern.errors import EagerError as EagerError
from lantern.errors import EscapedError as EscapedError
from lantern.errors import FileFormatError as FileFormatError
from lantern.errors import InUseError as InUseError
from lantern.errors import LanternError as LanternError
from lantern.errors import MissingExtraError as MissingExtraError
from lantern.errors import MissingRuleError as MissingRuleError
from lantern.errors import MutationError as MutationError
from lantern.errors import NestingError as NestingError
from lantern.errors import NoDelimiterError as NoDelimiterError
from lantern.errors import NotArrayError as NotArrayError
from lantern.errors import NotRegularFileError as NotRegularFileError
from lantern.errors import NotScalarError as NotScalarError
from lantern.errors import OptionError as OptionError
from lantern.errors import PositionError as PositionError
from lantern.errors import RankLostError as RankLostError
from lantern.errors import ResumptionError as ResumptionError
from lantern.errors import RuleError as RuleError
from lantern.errors import ShapeError as ShapeError
from lantern.errors import SizeError as SizeError
from lantern.errors import StagingError as StagingError
from lantern.errors import TakenNameError as TakenNameError
from lantern.errors import ThreadError as ThreadError
from lantern.errors import UnhandledEffectError as UnhandledEffectError
from lantern.errors import UninitializedError as UninitializedError
from lantern.parallel.executor import ThreadPoolExecutor as ThreadPoolExecutor
from lantern.parallel.executor import parallel_map as parallel_map
from lantern.rules.arithmetic import add as add
from lantern.rules.arithmetic import conj as conj
from lantern.rules.arithmetic import conj as conjugate
from lantern.rules.arithmetic import divide as divide
from lantern.rules.arithmetic import divide as true_divide
from lantern.rules.arithmetic import floor_divide as floor_divide
from lantern.rules.arithmetic import ieee_divide as ieee_divide
from lantern.rules.arithmetic import ieee_pow as ieee_pow
from lantern.rules.arithmetic import imag as imag
from lantern.rules.arithmetic import multiply as multiply
from lantern.rules.arithmetic import negative as negative
from lantern.rules.arithmetic import positive as positive
from lantern.rules.arithmetic import pow as pow
from lantern.rules.arithmetic import pow as power
from lantern.rules.arithmetic import real as real
from lantern.rules.arithmetic import remainder as mod
from lantern.rules.arithmetic import remainder as remainder
from lantern.rules.arithmetic import square as square
from lantern.rules.arithmetic import subtract as subtract
from lantern.rules.exponential import cbrt as cbrt
from lantern.rules.exponential import exp as exp
from lantern.rules.exponential import expm1 as expm1
from lantern.rules.exponential import log as log
from lantern.rules.exponential import log10 as log10
from lantern.rules.exponential import log1p as log1p
from lantern.rules.exponential import log2 as log2
from lantern.rules.exponential import sqrt as sqrt
from lantern.rules.noncommutative import register_commutative as register_commutative
from lantern.rules.number import Number as Number
from lantern.rules.selection import abs as abs
from lantern.rules.selection import abs as absolute
from lantern.rules.selection import ceil as ceil
from lantern.rules.selection import floor as floor
from lantern.rules.selection import maximum as maximum
from lantern.rules.selection import minimum as minimum
from lantern.rules.selection import sign as sign
from lantern.rules.selection import where as where
from lantern.rules.special import digamma as digamma
from lantern.rules.special import digamma as psi
from lantern.rules.special import erf as erf
from lantern.rules.special import erfc as erfc
from lantern.rules.special import gamma as gamma
from lantern.rules.special import lgamma as gammaln
from lantern.rules.special import lgamma as lgamma
from lantern.rules.special import polygamma as polygamma
from lantern.rules.special import relu as relu
from lantern.rules.special import sigmoid as expit
from lantern.rules.special import sigmoid as sigmoid
from lantern.rules.special import softplus as softplus
from lantern.rules.trigonometry import acos as acos
from lantern.rules.trigonometry import acos as arccos
from lantern.rules.trigonometry import acosh as acosh
from lantern.rules.trigonometry import acosh as arccosh
from lantern.rules.trigonometry import asin as arcsin
from lantern.rules.trigonometry import asin as asin
from lantern.rules.trigonometry import asinh as arcsinh
from lantern.rules.trigonometry import asinh as asinh
from lantern.rules.trigonometry import atan as arctan
from lantern.rules.trigonometry import atan as atan
from lantern.rules.trigonometry import atan2 as arctan2
from lantern.rules.trigonometry import atan2 as atan2
from lantern.rules.trigonometry import atanh as arctanh
from lantern.rules.trigonometry import atanh as atanh
from lantern.rules.trigonometry import cos as cos
from lantern.rules.trigonometry import cosh as cosh
from lantern.rules.trigonometry import hypot as hypot
from lantern.rules.trigonometry import sin as sin
from lantern.rules.trigonometry import sinh as sinh
from lantern.rules.trigonometry import tan as tan
from lantern.rules.trigonometry import tanh as tanh
from lantern.staging.ahead import compile as compile
from lantern.staging.ahead import emit_python as emit_python
from lantern.staging.ahead import show_llvm as show_llvm
from lantern.staging.dispatch import explain as explain
from lantern.staging.dispatch import jit as jit
from lantern.staging.show import show_adjoint as show_adjoint
from lantern.staging.show import show_ir as show_ir
from lantern.tensor.backend.device import device as device
from lantern.tensor.backend.device import to_device as to_device
from lantern.tensor.backend.numpy_namespace import NumpyNamespace as _NumpyNamespace
from lantern.tensor.buffer import Buffer as Buffer
from lantern.tensor.buffer_functions import copyto as copyto
from lantern.tensor.buffer_functions import fill_diagonal as fill_diagonal
from lantern.tensor.buffer_functions import place as place
from lantern.tensor.buffer_functions import put as put
from lantern.tensor.buffer_functions import putmask as putmask
from lantern.tensor.ops.at import At as At
from lantern.tensor.ops.at import apply_along_axis as apply_along_axis
from lantern.tensor.ops.at import at as at
from lantern.tensor.ops.at import piecewise as piecewise
from lantern.tensor.ops.at import put_along_axis as put_along_axis
from lantern.tensor.ops.concat_stack import atleast_1d as atleast_1d
from lantern.tensor.ops.concat_stack import atleast_2d as atleast_2d
from lantern.tensor.ops.concat_stack import atleast_3d as atleast_3d
from lantern.tensor.ops.concat_stack import column_stack as column_stack
from lantern.tensor.ops.concat_stack import concat as concat
from lantern.tensor.ops.concat_stack import concat as concatenate
from lantern.tensor.ops.concat_stack import dstack as dstack
from lantern.tensor.ops.concat_stack import hstack as hstack
from lantern.tensor.ops.concat_stack import stack as stack
from lantern.tensor.ops.concat_stack import vstack as vstack
from lantern.tensor.ops.convolution import convolve as convolve
from lantern.tensor.ops.convolution import correlate as correlate
from lantern.tensor.ops.convolution import interp as interp
from lantern.tensor.ops.convolution import unwrap as unwrap
from lantern.tensor.ops.creation import arange as arange
from lantern.tensor.ops.creation import array as array
from lantern.tensor.ops.creation import arrays as arrays
from lantern.tensor.ops.creation import asarray as asarray
from lantern.tensor.ops.creation import full as full
from lantern.tensor.ops.creation import full_like as full_like
from lantern.tensor.ops.creation import geomspace as geomspace
from lantern.tensor.ops.creation import linspace as linspace
from lantern.tensor.ops.creation import logspace as logspace
from lantern.tensor.ops.creation import stop_gradient as stop_gradient
from lantern.tensor.ops.cumulative import cummax as cummax
from lantern.tensor.ops.cumulative import cummin as cummin
from lantern.tensor.ops.cumulative import cumprod as cumprod
from lantern.tensor.ops.cumulative import cumsum as cumsum
from lantern.tensor.ops.cumulative import cumulative_prod as cumulative_prod
from lantern.tensor.ops.cumulative import cumulative_sum as cumulative_sum
from lantern.tensor.ops.diff import diff as diff
from lantern.tensor.ops.diff import ediff1d as ediff1d
from lantern.tensor.ops.diff import gradient as gradient
from lantern.tensor.ops.diff import trapezoid as trapezoid
from lantern.tensor.ops.einsum import einsum as einsum
from lantern.tensor.ops.elementwise import angle as angle
from lantern.tensor.ops.elementwise import clip as clip
from lantern.tensor.ops.elementwise import copysign as copysign
from lantern.tensor.ops.elementwise import deg2rad as deg2rad
from lantern.tensor.ops.elementwise import deg2rad as radians
from lantern.tensor.ops.elementwise import exp2 as exp2
from lantern.tensor.ops.elementwise import fabs as fabs
from lantern.tensor.ops.elementwise import fmax as fmax
from lantern.tensor.ops.elementwise import fmin as fmin
from lantern.tensor.ops.elementwise import heaviside as heaviside
from lantern.tensor.ops.elementwise import nan_to_num as nan_to_num
from lantern.tensor.ops.elementwise import rad2deg as degrees
from lantern.tensor.ops.elementwise import rad2deg as rad2deg
from lantern.tensor.ops.elementwise import real_if_close as real_if_close
from lantern.tensor.ops.elementwise import reciprocal as reciprocal
from lantern.tensor.ops.floating import divmod as divmod
from lantern.tensor.ops.floating import float_power as float_power
from lantern.tensor.ops.floating import fmod as fmod
from lantern.tensor.ops.floating import ldexp as ldexp
from lantern.tensor.ops.floating import modf as modf
from lantern.tensor.ops.floating import nextafter as nextafter
from lantern.tensor.ops.gamma import betaln as betaln
from lantern.tensor.ops.gamma import gamma_slope as gamma_slope
from lantern.tensor.ops.gamma import gammainc as gammainc
from lantern.tensor.ops.gamma import gammaincc as gammaincc
from lantern.tensor.ops.gamma import gammaincinv as gammaincinv
from lantern.tensor.ops.histogram import bincount as bincount
from lantern.tensor.ops.histogram import histogram as histogram
from lantern.tensor.ops.histogram import histogram2d as histogram2d
from lantern.tensor.ops.histogram import histogram_bin_edges as histogram_bin_edges
from lantern.tensor.ops.histogram import histogramdd as histogramdd
from lantern.tensor.ops.indexing import choose as choose
from lantern.tensor.ops.indexing import compress as compress
from lantern.tensor.ops.indexing import extract as extract
from lantern.tensor.ops.indexing import getitem as getitem
from lantern.tensor.ops.indexing import scatter as scatter
from lantern.tensor.ops.indexing import select as select
from lantern.tensor.ops.indexing import take as take
from lantern.tensor.ops.indexing import take_along_axis as take_along_axis
from lantern.tensor.ops.mean_variance import average as average
from lantern.tensor.ops.mean_variance import corrcoef as corrcoef
from lantern.tensor.ops.mean_variance import cov as cov
from lantern.tensor.ops.mean_variance import std as std
from lantern.tensor.ops.mean_variance import var as var
from lantern.tensor.ops.nan_reductions import nancumprod as nancumprod
from lantern.tensor.ops.nan_reductions import nancumsum as nancumsum
from lantern.tensor.ops.nan_reductions import nanmax as nanmax
from lantern.tensor.ops.nan_reductions import nanmean as nanmean
from lantern.tensor.ops.nan_reductions import nanmin as nanmin
from lantern.tensor.ops.nan_reductions import nanprod as nanprod
from lantern.tensor.ops.nan_reductions import nanstd as nanstd
from lantern.tensor.ops.nan_reductions import nansum as nansum
from lantern.tensor.ops.nan_reductions import nanvar as nanvar
from lantern.tensor.ops.pad import pad as pad
from lantern.tensor.ops.pad import trim_zeros as trim_zeros
from lantern.tensor.ops.polynomial import poly as poly
from lantern.tensor.ops.polynomial import polyadd as polyadd
from lantern.tensor.ops.polynomial import polyder as polyder
from lantern.tensor.ops.polynomial import polydiv as polydiv
from lantern.tensor.ops.polynomial import polyint as polyint
from lantern.tensor.ops.polynomial import polymul as polymul
from lantern.tensor.ops.polynomial import polysub as polysub
from lantern.tensor.ops.polynomial import polyval as polyval
from lantern.tensor.ops.polynomial import roots as roots
from lantern.tensor.ops.polynomial import vander as vander
from lantern.tensor.ops.products import cross as cross
from lantern.tensor.ops.products import diagonal as diagonal
from lantern.tensor.ops.products import dot as dot
from lantern.tensor.ops.products import inner as inner
from lantern.tensor.ops.products import kron as kron
from lantern.tensor.ops.products import matmul as matmul
from lantern.tensor.ops.products import matvec as matvec
from lantern.tensor.ops.products import outer as outer
from lantern.tensor.ops.products import tensordot as tensordot
from lantern.tensor.ops.products import trace as trace
from lantern.tensor.ops.products import vdot as vdot
from lantern.tensor.ops.products import vecdot as vecdot
from lantern.tensor.ops.products import vecmat as vecmat
from lantern.tensor.ops.quantiles import median as median
from lantern.tensor.ops.quantiles import nanmedian as nanmedian
from lantern.tensor.ops.quantiles import nanpercentile as nanpercentile
from lantern.tensor.ops.quantiles import nanquantile as nanquantile
from lantern.tensor.ops.quantiles import percentile as percentile
from lantern.tensor.ops.quantiles import quantile as quantile
from lantern.tensor.ops.rearrange import diag as diag
from lantern.tensor.ops.rearrange import diagflat as diagflat
from lantern.tensor.ops.rearrange import fliplr as fliplr
from lantern.tensor.ops.rearrange import flipud as flipud
from lantern.tensor.ops.rearrange import ix_ as ix_
from lantern.tensor.ops.rearrange import repeat as repeat
from lantern.tensor.ops.rearrange import resize as resize
from lantern.tensor.ops.rearrange import rollaxis as rollaxis
from lantern.tensor.ops.rearrange import rot90 as rot90
from lantern.tensor.ops.rearrange import tril_indices_from as tril_indices_from
from lantern.tensor.ops.rearrange import triu_indices_from as triu_indices_from
from lantern.tensor.ops.reduction import max as amax
from lantern.tensor.ops.reduction import max as max
from lantern.tensor.ops.reduction import mean as mean
from lantern.tensor.ops.reduction import min as amin
from lantern.tensor.ops.reduction import min as min
from lantern.tensor.ops.reduction import prod as prod
from lantern.tensor.ops.reduction import ptp as ptp
from lantern.tensor.ops.reduction import sum as sum
from lantern.tensor.ops.sets import intersect1d as intersect1d
from lantern.tensor.ops.sets import setdiff1d as setdiff1d
from lantern.tensor.ops.sets import setxor1d as setxor1d
from lantern.tensor.ops.sets import union1d as union1d
from lantern.tensor.ops.sets import unique as unique
from lantern.tensor.ops.sets import unique_all as unique_all
from lantern.tensor.ops.sets import unique_counts as unique_counts
from lantern.tensor.ops.sets import unique_inverse as unique_inverse
from lantern.tensor.ops.sets import unique_values as unique_values
from lantern.tensor.ops.shape import as_array as as_array
from lantern.tensor.ops.shape import astype as astype
from lantern.tensor.ops.shape import matrix_transpose as matrix_transpose
from lantern.tensor.ops.shape import moveaxis as moveaxis
from lantern.tensor.ops.shape import ravel as ravel
from lantern.tensor.ops.shape import reshape as reshape
from lantern.tensor.ops.shape import swapaxes as swapaxes
from lantern.tensor.ops.softmax import log_softmax as log_softmax
from lantern.tensor.ops.softmax import logsumexp as logsumexp
from lantern.tensor.ops.softmax import softmax as softmax
from lantern.tensor.ops.sorting import argpartition as argpartition
from lantern.tensor.ops.sorting import argsort as argsort
from lantern.tensor.ops.sorting import argwhere as argwhere
from lantern.tensor.ops.sorting import flatnonzero as flatnonzero
from lantern.tensor.ops.sorting import lexsort as lexsort
from lantern.tensor.ops.sorting import nonzero as nonzero
from lantern.tensor.ops.sorting import partition as partition
from lantern.tensor.ops.sorting import searchsorted as searchsorted
from lantern.tensor.ops.sorting import sort as sort
from lantern.tensor.ops.sorting import sort_complex as sort_complex
from lantern.tensor.ops.sorting import topk as topk
from lantern.tensor.ops.special import erfinv as erfinv
from lantern.tensor.ops.special import i0 as i0
from lantern.tensor.ops.special import i1 as i1
from lantern.tensor.ops.special import iv as iv
from lantern.tensor.ops.special import log_sigmoid as log_expit
from lantern.tensor.ops.special import log_sigmoid as log_sigmoid
from lantern.tensor.ops.special import logaddexp as logaddexp
from lantern.tensor.ops.special import logaddexp2 as logaddexp2
from lantern.tensor.ops.special import logit as logit
from lantern.tensor.ops.special import ndtr as ndtr
from lantern.tensor.ops.special import sinc as sinc
from lantern.tensor.ops.special import xlogy as xlogy
from lantern.tensor.ops.split_mesh import Brackets as _Brackets
from lantern.tensor.ops.split_mesh import append as append
from lantern.tensor.ops.split_mesh import array_split as array_split
from lantern.tensor.ops.split_mesh import block as block
from lantern.tensor.ops.split_mesh import broadcast_arrays as broadcast_arrays
from lantern.tensor.ops.split_mesh import delete as delete
from lantern.tensor.ops.split_mesh import dsplit as dsplit
from lantern.tensor.ops.split_mesh import hsplit as hsplit
from lantern.tensor.ops.split_mesh import insert as insert
from lantern.tensor.ops.split_mesh import meshgrid as meshgrid
from lantern.tensor.ops.split_mesh import split as split
from lantern.tensor.ops.split_mesh import unstack as unstack
from lantern.tensor.ops.split_mesh import vsplit as vsplit
from lantern.tensor.ops.zero_derivative import rint as rint
from lantern.tensor.ops.zero_derivative import round as around
from lantern.tensor.ops.zero_derivative import round as round
from lantern.tensor.ops.zero_derivative import trunc as fix
from lantern.tensor.ops.zero_derivative import trunc as trunc
from lantern.tensor.tensor import Tensor as Tensor
from lantern.transforms.custom_rule import custom_rule as custom_rule
from lantern.transforms.custom_vjp import custom_jvp as custom_jvp
from lantern.transforms.custom_vjp import custom_vjp as custom_vjp
from lantern.transforms.forward import jvp as jvp
from lantern.transforms.implicit import fixed_point as fixed_point
from lantern.transforms.implicit import root as root
from lantern.transforms.linearize import elementwise_grad as elementwise_grad
from lantern.transforms.linearize import hvp as hvp
from lantern.transforms.linearize import linearize as linearize
from lantern.transforms.linearize import vhp as vhp
from lantern.transforms.linearize import wirtinger as wirtinger
from lantern.transforms.reverse import grad as grad
from lantern.transforms.reverse import value_and_grad as value_and_grad
from lantern.transforms.reverse import vjp as vjp
from lantern.transforms.taylor import jet as jet
from lantern.transforms.taylor import taylor as taylor
from lantern.vectorizing.jacobian import diag_hessian as diag_hessian
from lantern.vectorizing.jacobian import hessian as hessian
from lantern.vectorizing.jacobian import jacfwd as jacfwd
from lantern.vectorizing.jacobian import jacobian as jacobian
from lantern.vectorizing.jacobian import jacrev as jacrev
from lantern.vectorizing.vmap import vmap as vmap
from numpy import bool as bool_
from numpy import complex128 as complex128
from numpy import complex64 as complex64
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import int8 as int8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64
from numpy import uint8 as uint8
from typing import Any

def all(*args: Any, **options: Any) -> Any: ...
def allclose(*args: Any, **options: Any) -> Any: ...
def any(*args: Any, **options: Any) -> Any: ...
def argmax(*args: Any, **options: Any) -> Any: ...
def argmin(*args: Any, **options: Any) -> Any: ...
def array_equal(*args: Any, **options: Any) -> Any: ...
def array_equiv(*args: Any, **options: Any) -> Any: ...
def bitwise_and(*args: Any, **options: Any) -> Any: ...
def bitwise_invert(*args: Any, **options: Any) -> Any: ...
def bitwise_left_shift(*args: Any, **options: Any) -> Any: ...
def bitwise_or(*args: Any, **options: Any) -> Any: ...
def bitwise_right_shift(*args: Any, **options: Any) -> Any: ...
def bitwise_xor(*args: Any, **options: Any) -> Any: ...
def broadcast_to(x: Any, /, shape: Any) -> Any: ...
c_: _Brackets
def count_nonzero(*args: Any, **options: Any) -> Any: ...
def digitize(*args: Any, **options: Any) -> Any: ...
e: _float
def empty(*args: Any, device: Any = None, **options: Any) -> Any: ...
def empty_like(x: Any, /, *args: Any, device: Any = None, **options: Any) -> Any: ...
def equal(*args: Any, **options: Any) -> Any: ...
def expand_dims(x: Any, /, axis: Any) -> Any: ...
def eye(*args: Any, device: Any = None, **options: Any) -> Any: ...
def flip(m: Any, /, axis: Any = None) -> Any: ...
def greater(*args: Any, **options: Any) -> Any: ...
def greater_equal(*args: Any, **options: Any) -> Any: ...
def identity(*args: Any, device: Any = None, **options: Any) -> Any: ...
inf: _float
def isclose(*args: Any, **options: Any) -> Any: ...
def iscomplex(*args: Any, **options: Any) -> Any: ...
def iscomplexobj(*args: Any, **options: Any) -> Any: ...
def isfinite(*args: Any, **options: Any) -> Any: ...
def isin(*args: Any, **options: Any) -> Any: ...
def isinf(*args: Any, **options: Any) -> Any: ...
def isnan(*args: Any, **options: Any) -> Any: ...
def isneginf(*args: Any, **options: Any) -> Any: ...
def isposinf(*args: Any, **options: Any) -> Any: ...
def isreal(*args: Any, **options: Any) -> Any: ...
def isrealobj(*args: Any, **options: Any) -> Any: ...
def less(*args: Any, **options: Any) -> Any: ...
def less_equal(*args: Any, **options: Any) -> Any: ...
def logical_and(*args: Any, **options: Any) -> Any: ...
def logical_not(*args: Any, **options: Any) -> Any: ...
def logical_or(*args: Any, **options: Any) -> Any: ...
def logical_xor(*args: Any, **options: Any) -> Any: ...
nan: _float
def nanargmax(*args: Any, **options: Any) -> Any: ...
def nanargmin(*args: Any, **options: Any) -> Any: ...
newaxis: None
def not_equal(*args: Any, **options: Any) -> Any: ...
numpy_namespace: _NumpyNamespace
def ones(*args: Any, device: Any = None, **options: Any) -> Any: ...
def ones_like(x: Any, /, *args: Any, device: Any = None, **options: Any) -> Any: ...
def permute_dims(x: Any, /, axes: Any = None) -> Any: ...
pi: _float
r_: _Brackets
def roll(a: Any, /, shift: Any, axis: Any = None) -> Any: ...
def signbit(*args: Any, **options: Any) -> Any: ...
def spacing(*args: Any, **options: Any) -> Any: ...
def squeeze(x: Any, /, axis: Any = None) -> Any: ...
def tile(A: Any, /, reps: Any) -> Any: ...
def transpose(x: Any, /, axes: Any = None) -> Any: ...
def tri(*args: Any, device: Any = None, **options: Any) -> Any: ...
def tril(m: Any, /, k: _int = 0) -> Any: ...
def triu(m: Any, /, k: _int = 0) -> Any: ...
def zeros(*args: Any, device: Any = None, **options: Any) -> Any: ...
def zeros_like(x: Any, /, *args: Any, device: Any = None, **options: Any) -> Any: ...
