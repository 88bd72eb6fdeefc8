"""``vmap`` of every operator of PyTorch's records, against one example after another.

    python tests/conformance/torch_vmap.py [NAME ...] [-v]

Each sample of an operator becomes several examples. What ``lantern.torch.vmap`` makes
of all of them at once must be what a loop makes of each by itself: values, the gradient
of each example (``vmap(grad(f))``), and the gradient through the ``vmap``
(``backward``).
The exit status is 1 if a value differs, or if something fails that is no RuntimeError
about data-dependent results.
"""

import argparse
import multiprocessing
import sys
import warnings
from collections import Counter
from itertools import combinations

import numpy as np
from torch_operators import ours_of, sampled
from torch_samples import converted

_CLOSE = {"float32": (1e-4, 1e-5), "float16": (1e-2, 1e-3), "bfloat16": (0.1, 0.1)}
LIMIT = 12  # samples of one operator
EXAMPLES = 3
# Whose results are no function of their arguments.
BY_CHANCE = frozenset(
    "empty_like new_empty new_empty_strided svd_lowrank pca_lowrank".split()
)
# What PyTorch refuses, too: results whose size depends on values, single numbers.
REFUSED = (
    "for each example",
    "another number",
    "data-dependent",
    "dynamic shape",
    "inplace arithmetic",
    "has no size",
    "Batch norm got a batched tensor",
)


def examples(ours, x, way):
    """Several tensors of the form of one, along a first axis."""
    x = x.detach()
    if way and x.dtype.is_floating_point and x.ndim:
        rows = [x.roll(n, -1) for n in range(EXAMPLES)]
    elif x.dtype.is_floating_point or x.dtype.is_complex:
        rows = [x, x * 0.75, x * 0.5]
    else:
        rows = [x.roll(n, 0) if x.ndim else x for n in range(EXAMPLES)]
    return ours.stack(rows)


def leaves(ours, tree):
    """The tensors among arguments."""
    if isinstance(tree, ours.Tensor):
        return [tree]
    if isinstance(tree, tuple | list):
        return [x for part in tree for x in leaves(ours, part)]
    if isinstance(tree, dict):
        return [x for part in tree.values() for x in leaves(ours, part)]
    return []


def filled(ours, tree, row):
    """Arguments with others in place of their tensors."""
    if isinstance(tree, ours.Tensor):
        return next(row)
    if isinstance(tree, tuple | list) and type(tree) in (tuple, list):
        return type(tree)(filled(ours, part, row) for part in tree)
    if isinstance(tree, dict):
        return {name: filled(ours, part, row) for name, part in tree.items()}
    return tree


def case_of(ours, function, arguments, options):
    """A function of the tensors alone, which returns a tuple of tensors."""

    def f(*tensors):
        row = iter(tensors)
        args = filled(ours, arguments, row)
        z = function(*args, **filled(ours, options, row))
        return tuple(leaves(ours, z))

    return f


def weighted(ours, f, floats):
    """A number that depends on all results of a function with a derivative."""

    def loss(*tensors):
        total = sum((0 * tensors[i].abs().sum() for i in floats), ours.zeros(()))
        for z in f(*tensors):
            if z.dtype.is_floating_point or z.dtype.is_complex:
                w = ours.arange(1, z.numel() + 1).reshape(z.shape).cos()
                total = total + (z.abs() * w.to(z.abs().dtype)).sum()
        return total

    return loss


def plain(z):
    """Results as arrays."""
    return [x.detach().numpy(force=True) for x in z]


def looped(ours, f, axes, n=EXAMPLES):
    """One example after another."""

    def run(*tensors):
        rows = []
        for i in range(n):
            pairs = zip(tensors, axes, strict=True)
            z = f(*(x if a is None else x[i].clone() for x, a in pairs))
            rows.append(z if isinstance(z, tuple) else (z,))
        return tuple(map(ours.stack, zip(*rows, strict=True)))

    return run


def modes(ours, f, tensors, axes):
    """Under each name what is computed at once, and what a loop computes."""
    batched = ours.vmap(f, in_dims=tuple(axes), randomness="different")
    each = looped(ours, f, axes)
    yield "values", lambda: batched(*tensors), lambda: each(*tensors)
    floats = [
        i
        for i, (x, a) in enumerate(zip(tensors, axes, strict=True))
        if x.dtype.is_floating_point
    ]
    if not floats:
        return
    g = ours.func.grad(weighted(ours, f, floats), argnums=tuple(floats))
    rows = ours.vmap(g, in_dims=tuple(axes), randomness="different")
    yield "gradients", lambda: rows(*tensors), lambda: looped(ours, g, axes)(*tensors)

    def backward(run):
        xs = [
            x.clone().requires_grad_() if i in floats else x
            for i, x in enumerate(tensors)
        ]
        loss = weighted(ours, lambda *_: run(*xs), floats)(*xs)
        found = ours.autograd.grad(
            loss, [xs[i] for i in floats], materialize_grads=True
        )
        return tuple(found)

    yield "backward", lambda: backward(batched), lambda: backward(each)


def same(mine, others):
    """Whether results agree in type, shape and value."""
    return len(mine) == len(others) and all(
        a.dtype == b.dtype
        and a.shape == b.shape
        and np.allclose(a, b, *_CLOSE.get(a.dtype.name, (1e-6, 1e-7)), equal_nan=True)
        for a, b in zip(mine, others, strict=True)
    )


def check(record):
    """An operator's name, what came of it, and lines about what is not right."""
    import lantern.torch as ours

    np.seterr(all="ignore")
    counts, lines = Counter(), []
    if record.name in BY_CHANCE:
        return record.name, counts, lines
    function, _, in_place = ours_of(record)
    variants = [("", function)] if function else []
    if in_place is not None:
        variants.append(("_", lambda x, *a, **o: in_place(x.clone(), *a, **o)))
    for n, sample in enumerate(sampled(record)):
        if n >= LIMIT:
            break
        try:
            arguments = converted((sample.input, *sample.args))
            options = converted(dict(sample.kwargs))
        except Exception:
            continue
        for mark, f in variants:
            if mark and sample.broadcasts_input:
                continue
            attempt(ours, record.name + mark, f, arguments, options, counts, lines)
    return record.name, counts, lines


def attempt(ours, name, function, arguments, options, counts, lines):
    """One sample in all modes, with all tensors mapped, or some."""
    singles = leaves(ours, (arguments, options))
    if not singles:
        return
    f = case_of(ours, function, arguments, options)
    for mapped in ways(len(singles)):
        axes = [0 if i in mapped else None for i in range(len(singles))]
        pairs = list(zip(singles, axes, strict=True))
        for way in (True, False):
            tensors = [
                examples(ours, x, way) if a == 0 else x.detach() for x, a in pairs
            ]
            if usable(ours, f, tensors, axes):
                break
        else:
            continue
        for mode, at_once, by_loop in modes(ours, f, tensors, axes):
            try:
                expected = plain(by_loop())
            except Exception:
                continue
            told = tried(at_once, expected)
            counts[told.partition(" ")[0]] += 1
            if told != "same":
                lines.append(f"{name} | {mode} of {mapped} | {told}")


def ways(count):
    """Which of so many tensors are mapped: every choice, of more than three fewer."""
    numbers = range(count)
    if count > 3:
        return [tuple(numbers), *((i,) for i in numbers), tuple(numbers)[1:]]
    return [c for n in range(count, 0, -1) for c in combinations(numbers, n)]


def usable(ours, f, tensors, axes):
    """Whether a loop computes the examples, and twice the same."""
    try:
        once = plain(looped(ours, f, axes)(*tensors))
        return same(once, plain(looped(ours, f, axes)(*tensors)))
    except Exception:
        return False


def tried(at_once, expected):
    """ "same", "WRONG", "refused" or "error", and why."""
    try:
        mine = plain(at_once())
    except RuntimeError as error:
        text = str(error).partition("\n")[0]
        if any(part in text for part in REFUSED):
            return f"refused {text[:150]}"
        return f"error RuntimeError {text[:200]}"
    except Exception as error:
        text = str(error).partition("\n")[0]
        return f"error {type(error).__name__} {text[:200]}"
    return "same" if same(mine, expected) else "WRONG"


def checked(name):
    """``check`` of the records of a name."""
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    return [check(record) for record in op_db if record.name == name]


def main():
    """All operators, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("-v", "--verbose", action="store_true", help="refusals as well")
    options = parser.parse_args()
    from torch.testing._internal.common_methods_invocations import op_db

    names = options.names or sorted({record.name for record in op_db})
    total, bad = Counter(), False
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        for found in pool.imap_unordered(checked, names):
            for _, counts, lines in found:
                total += counts
                for line in dict.fromkeys(lines):
                    wrong = "| refused" not in line
                    bad = bad or wrong
                    if wrong or options.verbose:
                        print(line, flush=True)
    print(dict(total))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
