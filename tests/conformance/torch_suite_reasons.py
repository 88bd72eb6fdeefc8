"""What of PyTorch's test files does not count, and why others fail."""

import re

# FILE:CLASS.test: other devices, the compiler, quantised types, PyTorch's own storage.
EXCLUDED = (
    r"(?i)cuda|jit|torchscript|dynamo|inductor|compile|fx_|_fx|quantiz|mkldnn|xla|vulkan"
    r"|sparse|storage|functionaliz|python_dispatch|torch_dispatch|dispatch_mode"
    r"|named_?tensor|nested|TestBothSerialization|TestOldSerialization"
    r"|cpp_|subprocess|share_memory|segfault|deterministic"
    r"|lazy_clone|_cow_|resizable|qengine"
    # Operators of a test build of the dispatcher; layers of quantised training.
    r"|TestAutogradMultipleDispatch|transfer_parametrizations_and_params"
)
# Failures that are known by the test: a kind, the tests, and why it is so.
KNOWN = {
    "no device 'meta'": (
        r"meta_serialization|_meta$|add_meta_scalar|cloned_deepcopy_requires",
        "every tensor has memory here",
    ),
    "lazy signs": (
        r"math_view|math_bits|zerotensor|conj_neg_view|conj_imag_view",
        "conjugates and negatives are computed, not noted for later",
    ),
    "other draws": (
        r"sobolengine.*scrambled",
        "a seed gives other numbers than PyTorch's generator",
    ),
    "programs in files": (
        (
            r"weights_only_env|serialization_save_warnings|safe_globals_blocklist"
            r"|test_pickle_module|load_nonexistent_device|crc32_options|filewriter"
        ),
        (
            "nothing in a file is run, files of GPUs are read without one, and "
            "check sums are always right"
        ),
    ),
    "order in memory": (
        r"memory_format|strides_propagation|empty_slice|filelike_uses_readinto",
        "NumPy chooses the strides of results, and how files are read",
    ),
    "rounding": (
        r"gradient_all",
        "as far from the exact value as PyTorch's, where terms cancel in float32",
    ),
    "works here": (
        r"numpy_array_binary_ufunc_promotion|mem_overlap|indexing_fail",
        "the test asks for a failure: arrays next to tensors, results over operands",
    ),
    "classes with slots of their own": (
        r"tensor_subclass|safe_globals_context|unsafe_global|test_swap_",
        "PyTorch's wrapper subclasses (TwoTensor, _make_subclass)",
    ),
    "life of C++ objects": (
        (
            r"re?ss?urrect|fix_weakref|tensor_base_init|check_tensor_internal|cxx_flags"
            r"|doc_template|warn_types|is_alias_of"
        ),
        "names of PyTorch's own tests and of its build",
    ),
}
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
REASONS = {kind: why for kind, (_, why) in (KNOWN | KINDS).items()}


def kinds(row):
    """The kind of a failure."""
    for kind, (tests, _) in KNOWN.items():
        if re.search(tests, row["id"]):
            return kind
    what = f"{row.get('error', row['status'])}: {row.get('text', '')}"
    return next(kind for kind, (words, _) in KINDS.items() if re.search(words, what))
