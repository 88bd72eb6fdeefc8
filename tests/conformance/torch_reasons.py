"""What the table of PyTorch's operators needs to know beyond its records."""

# Their values are drawn, or are what happened to be in memory: shape and type count.
RANDOM = frozenset(
    "bernoulli cauchy empty empty_like empty_permuted empty_strided exponential "
    "geometric log_normal multinomial new_empty new_empty_strided "
    "nn.functional.fractional_max_pool3d normal rand_like randint randint_like randn "
    "randn_like svd_lowrank uniform".split()
)
# Records of PyTorch's own machinery, which no program calls by name.
INTERNAL = frozenset()
_ONE_OF_TWO = (
    "where two windows have their largest element at one place, only the one that is "
    "written receives a gradient"
)
REASONS = {
    "linalg.pinv": (
        "`hermitian=True` of a matrix that is not: PyTorch's formula for the gradient "
        "reads the other triangle, too"
    ),
    "narrow_copy": "a wrong axis is an IndexError, as in `narrow`",
    "nn.functional.max_unpool1d": _ONE_OF_TWO,
    "nn.functional.max_unpool2d": _ONE_OF_TWO,
    "nn.functional.max_unpool3d": _ONE_OF_TWO,
    "optim.SparseAdam": "its gradients are dense here, which PyTorch's refuses",
    "sparse.mm": "`reduce` is not supported: an error that says so",
    "special.bessel_j0": "SciPy's values, right where PyTorch's lose digits",
    "special.bessel_y1": "SciPy's values, right where PyTorch's lose digits",
}
# Why operators are absent: names, or beginnings of names.
ABSENT = {
    "compiled from source text at run time": "jiterator_*",
    "sparse tensors": "sparse.* to_sparse",
    "quantised, half or 8-bit types": "chalf torch._scaled_mm*",
    "internal to PyTorch": (
        "_* torch.ops.* native_* max_pool2d_with_indices_backward hash_tensor "
        "nonzero_static"
    ),
    "`torch.masked`, a prototype": "masked.*",
    "memory that is resized or laid out by hand": (
        "resize_ resize_as_ as_strided* empty_strided empty_permuted new_empty_strided"
    ),
    "parts of neural networks, under `nn.functional` in programs": (
        "grid_sampler* constant_pad_nd"
    ),
    "modules that learn their sizes from the first input": "nn.Lazy*",
    "`sparse` gradients, and optimisers that are new": ("optim.Adafactor optim.Muon"),
    "a loss that is new": (
        "nn.LinearCrossEntropyLoss nn.functional.linear_cross_entropy"
    ),
    "rare factorisations": (
        "linalg.ldl* linalg.householder_product geqrf ormqr svd_lowrank pca_lowrank "
        "triangular_solve"
    ),
}
