"""Run PyTorch's own records against ``lantern.torch``, and write the table.

    python tests/conformance/torch_operators.py [NAME ...] [--write] [-v]

PyTorch ships, for each operator, module and optimiser, a generator of sample inputs and
of inputs that are errors (it needs ``expecttest``). For each sample the function, the
method and the variant in place must give the same values, types and shapes under both,
and the same gradients; for each error the same class. Names are those of operators
("add", "nn.functional.gelu"), modules ("nn.Linear") and optimisers ("optim.Adam"). With
--write, the tables of docs/torch.md are written anew. The exit status is 1 if something
differs that REASONS does not explain.
"""

import argparse
import multiprocessing
import sys
import warnings
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FunctionType

import numpy as np
import torch_layers
import torch_reasons
import torch_samples
from torch_samples import (
    DifferenceError,
    Outcome,
    compare,
    converted,
    copied,
    gradients,
    lookup,
    same,
)
from torch_table import write

ROOT = Path(__file__).resolve().parents[2]


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--write", action="store_true", help="write docs/torch.md")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--device", action="store_true", help="on a stand-in for a GPU")
    parser.add_argument("-v", "--verbose", action="store_true", help="every difference")
    return parser.parse_args()


def ours_of(record):
    """Our function, method and variant in place of an operator; None for absent."""
    import lantern.torch as ours

    name = record.name
    function = lookup(ours, name)
    function = function if callable(function) else None
    method = getattr(ours.Tensor, name, None) if "." not in name else None
    in_place, theirs = None, record.inplace_variant
    if isinstance(theirs, partial):
        in_place = partial(function, **theirs.keywords)
    elif theirs is not None:
        in_place = vars(ours.Tensor).get(theirs.__name__)
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


def run_reference(what, reference, arguments, options, seed=0):
    """PyTorch's arguments, and its result for them."""
    import torch as theirs

    start, options = copied(arguments), copied(options)
    first = start
    if what == "in place":
        first = (start[0].clone(), *start[1:])
    theirs.manual_seed(seed)
    return (start, options), reference(*first, **options)


def is_random(record, arguments, options):
    """Whether values are drawn: PyTorch's own differ with another seed."""
    import torch as theirs

    if record.name in torch_reasons.RANDOM:
        return True
    # A record sets the seed itself; the function that it is about does not.
    function = lookup(theirs, record.name)
    if not record.name.startswith("nn.") or function is None:
        return False
    case = "function", function, arguments, options
    return not same(run_reference(*case)[1], run_reference(*case, seed=1)[1])


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
        case = what, reference, arguments, sample.kwargs
        try:
            inputs, expected = run_reference(*case)
            random = is_random(record, arguments, sample.kwargs)
        except Exception:
            continue
        try:
            expected = sample.output_process_fn_grad(expected)
            wanted = gradients(theirs, inputs, expected)
        except Exception:
            wanted = None
        outcome.attempt(
            what,
            partial(
                check_variant, what, mine, arguments, sample, expected, wanted, random
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
        arguments = (sample.input, *sample.args)
        try:
            start = converted(arguments), converted(sample.kwargs)
        except Exception:
            continue
        torch_layers.check_error(
            outcome,
            case,
            partial(record.op, *copied(arguments), **copied(sample.kwargs)),
            partial(function, *start[0], **start[1]),
        )


def check(record):
    """All of one operator."""
    import torch as theirs

    import lantern.torch as ours

    if hasattr(record, "optim_cls"):
        return torch_layers.check_optimiser(record)
    if hasattr(record, "module_cls"):
        return torch_layers.check_layer(record)
    outcome = Outcome(record.name, record.variant_test_name)
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
    return (
        Outcome(record.name, record.variant_test_name)
        if outcome.status == "absent"
        else outcome
    )


def name_of(record):
    """The name by which a record is asked for."""
    cls = getattr(record, "optim_cls", None)
    return record.name if cls is None else f"optim.{cls.__name__}"


def records(names):
    """What is asked for; without names everything."""
    from torch.testing._internal.common_methods_invocations import op_db

    everything = [*op_db, *torch_layers.layers(), *torch_layers.optimisers()]
    return [r for r in everything if not names or name_of(r) in names]


def work(chunk):
    """Some operators, by their places; what the process shares is the options."""
    return [check(r) for r in _CHOSEN[chunk]]


_CHOSEN = []


def main():
    """Run the records and report."""
    import torch as theirs

    options = parse()
    theirs.set_num_threads(1)
    device = ExitStack()
    if options.device:
        sys.path.insert(0, str(ROOT))
        from tests.backends import StandIn, as_cuda

        device.enter_context(as_cuda(StandIn()))
        import lantern.torch as ours

        ours.set_default_device("cuda")
        torch_samples.PLACE[0] = "cuda"
    _CHOSEN.extend(records(options.names))
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
    print(len(names), "pass")
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
