"""What CuPy 14.2 has and lacks, for its stand-in."""

MISSING_FUNCTIONS = set(
    "asmatrix block bmat cumulative_prod cumulative_sum einsum_path frompyfunc "
    "geomspace histogram_bin_edges insert isnat matvec nanpercentile nanquantile "
    "polyder polydiv polyint seterr spacing unstack vecdot vecmat linalg.diagonal "
    "linalg.matrix_norm linalg.multi_dot linalg.outer linalg.svdvals linalg.tensordot "
    "linalg.trace linalg.vecdot linalg.vector_norm".split()
)
MISSING_PARAMETERS = {
    "initial where": "sum prod max min amax amin nansum nanprod nanmax nanmin",
    "where": "all any mean nanmean std var nanstd nanvar",
    "mean correction": "std var nanstd nanvar",
    "weights": "percentile quantile",
    "order": "sort argsort partition argpartition",
    "stable": "sort argsort",
    "min max": "clip",
    "mode": "take",
    "sorted": "unique",
    "keepdims": "count_nonzero",
    "subok": "broadcast_to",
    "shape copy": "reshape",
    "device": (
        "zeros ones full empty eye arange linspace asarray astype zeros_like ones_like "
        "full_like empty_like"
    ),
    "axis": "lexsort trim_zeros",
    "kind": "argpartition partition isin",
    "sparse": "indices",
    "shape": "unravel_index",
    "upper": "cholesky",
    "hermitian": "svd pinv",
    "rtol": "pinv",
}
# The types that ``at`` adds, subtracts and compares.
AT = {
    "add": "int32 int64 float16 float32 float64 uint32 uint64",
    "subtract": "int32 uint32",
    "maximum": "int32 int64 float32 float64 uint32 uint64",
    "minimum": "int32 int64 float32 float64 uint32 uint64",
}
SPECIAL_FUNCTIONS = (
    "beta betainc betaincinv betaln binom cbrt digamma ellipk entr erf erfc erfcinv "
    "erfcx erfinv exp10 exp2 expi expit expm1 expn exp1 exprel gamma gammainc "
    "gammaincc gammaincinv gammainccinv gammaln gammasgn huber i0 i0e i1 i1e j0 j1 k0 "
    "k0e k1 k1e kl_div lambertw log1p log_expit log_ndtr log_softmax loggamma logit "
    "logsumexp ndtr ndtri poch polygamma pseudo_huber psi rel_entr rgamma sici softmax "
    "xlog1py xlogy y0 y1 yn zeta zetac"
).split()
METHODS = set(
    "all any argmax argmin argpartition argsort clip compress conj conjugate copy "
    "cumprod cumsum diagonal dot flatten max mean min nonzero prod ravel repeat round "
    "searchsorted sort squeeze std sum swapaxes take trace transpose var view".split()
)
# Functions that make an array of something else than arrays.
CREATION = set(
    "arange array asarray ascontiguousarray blackman diag_indices empty eye fftfreq "
    "full hamming hanning identity indices kaiser linspace logspace ones rfftfreq tri "
    "tril_indices triu_indices zeros".split()
)
# Those that find no axis 0 in what has none.
REDUCTIONS = set(
    "all amax amin any argmax argmin cumprod cumsum max mean min nancumprod nancumsum "
    "nanmax nanmean nanmin nanprod nanstd nansum nanvar prod std sum var".split()
)
# Functions that copy operands on the host to the device.
CONVERTING = {"allclose", "isclose"}
COPYING = {"array", "asarray", "ascontiguousarray"}
# Functions that compute with types and shapes alone.
ABOUT = set(
    "broadcast_shapes can_cast common_type iscomplexobj isdtype isrealobj isscalar "
    "issubdtype ndim promote_types result_type shape size".split()
)
# Functions that copy a number to the host: how large a result is, whether an error is
# to be raised, or which of two ways is to be taken.
LOOKING = set(
    "argpartition argwhere bincount choose extract flatnonzero histogram histogram2d "
    "histogramdd intersect1d lstsq mask_indices nonzero pinv setdiff1d setxor1d "
    "tril_indices trim_zeros triu_indices union1d unique unique_all unique_counts "
    "unique_inverse unique_values unravel_index".split()
)
