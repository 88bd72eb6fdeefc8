"""What the table of PyTorch's operators needs to know beyond its records."""

# Their values are drawn, or are what happened to be in memory: shape and type count.
RANDOM = frozenset(
    "bernoulli cauchy empty empty_like empty_permuted empty_strided exponential "
    "geometric log_normal multinomial new_empty new_empty_strided normal rand_like "
    "randint randint_like randn randn_like uniform".split()
)
# Records of PyTorch's own machinery, which no program calls by name.
INTERNAL = frozenset()
REASONS: dict[str, str] = {}
