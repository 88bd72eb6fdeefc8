"""Run PyTorch's own operator records against ``lantern.torch``, and write the table.

    python tests/conformance/torch_operators.py [NAME ...] [--neural] [--write] [-v]

PyTorch ships, for each operator, a generator of sample inputs and of inputs that are
errors (it needs ``expecttest``). For each sample the function, the method and the
variant in place must give the same values, types and shapes under both, and the same
gradients; for each error the same class. With --write, the tables of docs/torch.md are
written anew. The exit status is 1 if an operator differs that REASONS does not explain.
"""

import argparse
import multiprocessing
import sys
import warnings
from collections import Counter
from pathlib import Path
from types import FunctionType

import numpy as np
import torch_reasons
from torch_table import write

ROOT = Path(__file__).resolve().parents[2]


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="only these operators")
    parser.add_argument("--neural", action="store_true", help="also nn.functional's")
    parser.add_argument("--write", action="store_true", help="write docs/torch.md")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("-v", "--verbose", action="store_true", help="every difference")
    return parser.parse_args()


def converted(x):
    """An argument of PyTorch's as Lantern's."""
    import torch as theirs

    import lantern.torch as ours

    if isinstance(x, theirs.Tensor):
        if x.layout != theirs.strided or x.is_quantized:
            raise NotImplementedError("sparse")
        kind = getattr(ours, str(x.dtype).partition(".")[2])
        plain = x.detach().resolve_conj().resolve_neg()
        z = ours.from_numpy(np.array(plain.numpy(), copy=True)).to(kind)
        return z.requires_grad_() if x.requires_grad else z
    if isinstance(x, theirs.dtype | theirs.layout | theirs.memory_format):
        return getattr(ours, str(x).partition(".")[2])
    if isinstance(x, theirs.device):
        return ours.device(str(x))
    if isinstance(x, theirs.Size):
        return ours.Size(x)
    if isinstance(x, tuple | list):
        return type(x)(converted(part) for part in x)
    if isinstance(x, dict):
        return {name: converted(part) for name, part in x.items()}
    return x


def copied(x):
    """An argument of PyTorch's, so that writing to it does no harm."""
    import torch as theirs

    if isinstance(x, theirs.Tensor):
        return x.detach().clone().requires_grad_(x.requires_grad)
    if isinstance(x, tuple | list) and type(x) in (tuple, list):
        return type(x)(copied(part) for part in x)
    if isinstance(x, dict):
        return {name: copied(part) for name, part in x.items()}
    return x


def tensors(z):
    """The tensors among arguments or results, in order."""
    if hasattr(z, "requires_grad_"):
        return [z]
    if isinstance(z, tuple | list):
        return [y for part in z for y in tensors(part)]
    if isinstance(z, dict):
        return [y for part in z.values() for y in tensors(part)]
    return []


class DifferenceError(Exception):
    """What differs, in one line."""


def number_of(x):
    """A tensor's elements, in PyTorch or here, as NumPy's."""
    x = x.detach()
    return x.resolve_conj().resolve_neg().numpy(force=True)


def compare(mine, other, what, random=False, close=1e-6):
    """Raise DifferenceError unless two results agree."""
    import torch as theirs

    import lantern.torch as ours

    if isinstance(other, theirs.Tensor):
        if not isinstance(mine, ours.Tensor):
            raise DifferenceError(
                f"{what}: a tensor expected, got {type(mine).__name__}"
            )
        if str(mine.dtype) != str(other.dtype):
            raise DifferenceError(
                f"{what}: type {mine.dtype}, PyTorch has {other.dtype}"
            )
        if tuple(mine.shape) != tuple(other.shape):
            raise DifferenceError(
                f"{what}: shape {tuple(mine.shape)}, PyTorch has {tuple(other.shape)}"
            )
        if not random:
            a, b = number_of(mine), number_of(other)
            if not np.allclose(a, b, close, close / 10, equal_nan=True):
                raise DifferenceError(f"{what}: values differ")
    elif isinstance(other, tuple | list):
        if not isinstance(mine, tuple | list) or len(mine) != len(other):
            raise DifferenceError(f"{what}: {len(other)} results expected")
        for a, b in zip(mine, other, strict=True):
            compare(a, b, what, random, close)
    elif isinstance(other, float | complex):
        if not random and not np.allclose(mine, other, close, equal_nan=True):
            raise DifferenceError(f"{what}: {mine!r}, PyTorch has {other!r}")
    elif isinstance(other, bool | int) and mine != other and not random:
        raise DifferenceError(f"{what}: {mine!r}, PyTorch has {other!r}")


def gradients(torch, arguments, results):
    """The gradients of a weighted sum of the results; None where there is none."""
    inputs = [x for x in tensors(arguments) if x.requires_grad]
    outputs = [z for z in tensors(results) if z.requires_grad]
    if not inputs or not outputs:
        return None
    weights = []
    for n, z in enumerate(outputs):
        w = np.cos(np.arange(z.numel()) + n).reshape(tuple(z.shape))
        kind = getattr(torch, str(z.dtype).partition(".")[2])
        weights.append(torch.from_numpy(np.array(w)).to(kind))
    found = torch.autograd.grad(outputs, inputs, weights, allow_unused=True)
    return [
        torch.zeros_like(x) if g is None else g
        for x, g in zip(inputs, found, strict=True)
    ]


def ours_of(record):
    """Our function, method and variant in place of an operator; None for absent."""
    import lantern.torch as ours

    place, name = ours, record.name
    for part in name.split("."):
        place = vars(place).get(part) if part.startswith("__") else lookup(place, part)
        if place is None:
            break
    method = getattr(ours.Tensor, name, None) if "." not in name else None
    function = place if callable(place) else None
    in_place = None
    if record.inplace_variant is not None:
        in_place = vars(ours.Tensor).get(record.inplace_variant.__name__)
    if function is None and isinstance(method, property):
        function, method = method.fget, None
    function = function or method or in_place
    written_here = getattr(record.op, "__module__", "") or ""
    if function and written_here.startswith("torch.testing"):
        function = rebound(record.op) or function
    return function, method if record.method_variant else None, in_place


def rebound(function):
    """A function of the records, whose ``torch`` is ours."""
    import lantern.torch as ours

    if type(function) is not FunctionType:
        return None
    names = {**function.__globals__, "torch": ours}
    options = function.__defaults__, function.__closure__
    z = FunctionType(function.__code__, names, function.__name__, *options)
    z.__kwdefaults__ = function.__kwdefaults__
    return z


def lookup(place, part):
    """An attribute, or None."""
    try:
        return getattr(place, part)
    except AttributeError:
        return None


class Record:
    """The outcome of one operator."""

    def __init__(self, record):
        self.name, self.variant = record.name, record.variant_test_name
        self.status = "absent"
        self.counts = Counter()
        self.differences = Counter()

    def attempt(self, what, action):
        """Count whether something goes as in PyTorch."""
        self.counts[what] += 1
        try:
            action()
            self.counts[f"{what} passed"] += 1
        except Exception as error:
            text = str(error).partition("\n")[0]
            if not isinstance(error, DifferenceError):
                text = f"{what}: {type(error).__name__}: {text}"
            self.differences[text[:160]] += 1


def random_operator(record):
    """Whether its values are drawn, or left as they were."""
    return record.name in torch_reasons.RANDOM


def sampled(record):
    """The samples of an operator, in float64 or the first type that it has."""
    import torch as theirs

    for kind in (theirs.float64, theirs.complex128, theirs.int64, theirs.bool):
        if record.supports_dtype(kind, "cpu"):
            break
    tracked = record.supports_autograd and kind.is_floating_point | kind.is_complex
    theirs.manual_seed(0)
    try:
        yield from record.sample_inputs("cpu", kind, requires_grad=tracked)
    except (ImportError, NotImplementedError, AssertionError):
        return


def check_sample(outcome, record, sample, variants):
    """One sample under both: the function, the method, the variant in place."""
    import torch as theirs

    function, method, in_place = variants
    arguments = (sample.input, *sample.args)
    pairs = [("function", record.op, function)]
    if method is not None:
        pairs.append(("method", record.method_variant, method))
    if in_place is not None and not sample.broadcasts_input:
        pairs.append(("in place", record.inplace_variant, in_place))
    for what, reference, mine in pairs:
        try:
            first, second = copied(arguments), copied(sample.kwargs)
            start = first
            if what == "in place":
                if not isinstance(first[0], theirs.Tensor):
                    continue
                first = (first[0].clone(), *first[1:])
            theirs.manual_seed(0)
            expected = reference(*first, **second)
            if what == "function" and record.op is not reference:
                continue
        except Exception:
            continue
        try:
            expected = sample.output_process_fn_grad(expected)
            wanted = gradients(theirs, (start, second), expected)
        except Exception:
            wanted = None
        outcome.attempt(
            what,
            lambda w=what, m=mine, e=expected, g=wanted: check_variant(
                w, m, arguments, sample, e, g, random_operator(record)
            ),
        )


def check_variant(what, function, arguments, sample, expected, wanted, random):
    """Our result and its gradients against PyTorch's."""
    import lantern.torch as ours

    start, options = converted(arguments), converted(sample.kwargs)
    first = start
    if what == "in place":
        first = (start[0].clone(), *start[1:])
    results = function(*first, **options)
    results = sample.output_process_fn_grad(results)
    compare(results, expected, what, random)
    if wanted is not None and not random:
        found = gradients(ours, (start, options), results)
        if found is None:
            if any(g.abs().max() > 0 for g in wanted if g.numel()):
                raise DifferenceError(f"{what}: not tracked, PyTorch tracks it")
            return
        compare(found, wanted, f"gradient of {what}", False, 1e-5)


def check_errors(outcome, record, function):
    """Inputs that are errors: the same class here."""
    if record.error_inputs_func is None:
        return
    try:
        cases = list(record.error_inputs("cpu"))
    except Exception:
        return
    for case in cases:
        sample = case.sample_input
        try:
            record.op(
                copied(sample.input), *copied(sample.args), **copied(sample.kwargs)
            )
            continue
        except Exception as error:
            expected = case.error_type
            if not isinstance(error, expected):
                expected = type(error)
        try:
            arguments = converted((sample.input, *sample.args))
            options = converted(sample.kwargs)
        except Exception:
            continue

        def refuse(a=arguments, o=options, e=expected, c=case):
            try:
                function(*a, **o)
            except Exception as error:
                if isinstance(error, e):
                    return
                raise DifferenceError(
                    f"error: {type(error).__name__} ({error}), PyTorch raises "
                    f"{e.__name__}"
                ) from None
            raise DifferenceError(
                f"error: none, PyTorch raises {e.__name__}: {c.error_regex}"
            )

        outcome.attempt("error", refuse)


def check(record):
    """All of one operator."""
    import torch as theirs

    import lantern.torch as ours

    outcome = Record(record)
    variants = ours_of(record)
    if variants[0] is None:
        return outcome
    ours.manual_seed(0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in sampled(record):
            try:
                check_sample(outcome, record, sample, variants)
            except NotImplementedError:
                continue
        theirs.manual_seed(0)
        check_errors(outcome, record, variants[0])
    outcome.status = "differs" if outcome.differences else "passes"
    if not outcome.counts:
        outcome.status = "absent"
    return outcome


def records(options):
    """The operators that are asked for."""
    from torch.testing._internal.common_methods_invocations import op_db

    skipped = torch_reasons.INTERNAL
    return [
        r
        for r in op_db
        if (r.name in options.names if options.names else r.name not in skipped)
        and (options.names or options.neural or not r.name.startswith("nn."))
    ]


def work(chunk):
    """Some operators, by their places; what the process shares is the options."""
    return [check(r) for r in _CHOSEN[chunk]]


_CHOSEN = []


def main():
    """Run the records and report."""
    import torch as theirs

    options = parse()
    theirs.set_num_threads(1)
    _CHOSEN.extend(records(options))
    n = len(_CHOSEN)
    parts = [slice(i, min(i + 8, n)) for i in range(0, n, 8)]
    if options.workers > 1 and n > 8:
        with multiprocessing.get_context("fork").Pool(options.workers) as pool:
            found = [r for part in pool.imap(work, parts) for r in part]
    else:
        found = [r for part in parts for r in work(part)]
    for r in found:
        if r.status != "passes" and (options.verbose or r.status != "absent"):
            print(r.status, r.name, r.variant, dict(r.counts))
            for text, times in r.differences.most_common(9 if options.verbose else 2):
                print(f"    {times} x {text}")
    print(Counter(r.status for r in found))
    names = {r.name for r in found if r.status == "passes"}
    print(len(names), "operators pass")
    if options.write:
        write(ROOT / "docs" / "torch.md", found)
    unexplained = [
        r
        for r in found
        if r.status == "differs" and r.name not in torch_reasons.REASONS
    ]
    return bool(unexplained)


if __name__ == "__main__":
    sys.exit(main())
