"""What of PyTorch's test files does not count, and why others fail."""

import re

# FILE:CLASS.test: other devices, the compiler, quantised types, PyTorch's own storage.
EXCLUDED = (
    r"(?i)cuda|jit|torchscript|dynamo|inductor|compile|fx_|_fx|quantiz|mkldnn|xla|vulkan"
    r"|sparse|storage|functionaliz|python_dispatch|torch_dispatch|dispatch_mode"
    r"|named_?tensor|nested|TestBothSerialization|TestOldSerialization"
    r"|cpp_|subprocess|share_memory|segfault|deterministic"
)
# A kind of failure: what its error says, and why it is so.
KINDS = {
    "missing name": (
        r"MissingNameError|NameError|ModuleNotFound|ImportError|AttributeError",
        "names that few programs use",
    ),
    "missing type": (
        r"NoVariant|NumPy has no such type|Unknown dtype",
        "float8, complex32: NumPy has no such type",
    ),
    "refused argument": (
        r"unexpected keyword|positional arg|NotImplemented|OptionError|ArgumentError",
        "options and calls that are an error here",
    ),
    "wrong type of result": (r"DTYPE", "the values are right, in another type"),
    "wrong shape or strides": (r"SHAPE|STRIDE|lengths", "of results in rare cases"),
    "wrong value": (r"VALUES|EQUAL", "not explained one by one yet"),
    "error or warning in other words": (
        r"does not match|not triggered|WARNING|Expected .* but got",
        "errors in Lantern's words; warnings of PyTorch's future",
    ),
    "no error": (
        r"not raised",
        "what PyTorch refuses works here",
    ),
    "slow or crashed": (r"^slow|^crash", "more than 10 s, or memory"),
    "another error": (r"Error", "an error where PyTorch has none"),
    "other": (r"", "checks of PyTorch's internals"),
}
REASONS = {kind: why for kind, (_, why) in KINDS.items()}


def kinds(row):
    """The kind of a failure."""
    what = f"{row.get('error', row['status'])}: {row.get('text', '')}"
    return next(kind for kind, (words, _) in KINDS.items() if re.search(words, what))
