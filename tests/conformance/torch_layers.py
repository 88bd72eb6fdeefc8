"""PyTorch's own records of its modules and optimisers, under both."""

import copy
import warnings
from functools import partial

import numpy as np
from torch_samples import (
    PLACE,
    DifferenceError,
    Outcome,
    compare,
    converted,
    copied,
    gradients,
    lookup,
    refuses,
    same,
)


def layers():
    """The records of modules."""
    from torch.testing._internal.common_modules import module_db

    return module_db


def optimisers():
    """The records of optimisers."""
    from torch.testing._internal.common_optimizers import optim_db

    return optim_db


def check_layer(record):
    """All of one module: text, state, results and gradients, and errors."""
    import torch as theirs

    import lantern.torch as ours

    outcome = Outcome(record.name)
    mine = lookup(ours, record.name)
    if mine is None:
        return outcome
    for training in (True, False):
        for sample in samples(record.module_inputs_func, record, training):
            what = "training" if training else "evaluating"
            outcome.attempt(what, partial(run_both, record, mine, sample, training))
    if record.module_error_inputs_func is not None:
        for case in samples(record.module_error_inputs_func, record, True):
            sample = case.module_error_input

            def act(torch, cls, change, sample=sample):
                start, forward = sample.constructor_input, sample.forward_input
                m = cls(*change(start.args), **change(start.kwargs))
                if forward is not None:
                    m.to(torch.float64)(*change(forward.args), **change(forward.kwargs))

            check_error(
                outcome,
                case,
                partial(act, theirs, record.module_cls, copied),
                partial(act, ours, mine, converted),
            )
    return outcome


def samples(make, record, training):
    """What a generator of PyTorch's gives, in float64."""
    import torch as theirs

    theirs.manual_seed(0)
    part, kind = theirs.nn.TransformerEncoderLayer, theirs.float64
    start = part.__init__

    def remember(self, *args, **options):
        start(self, *args, **options)
        self.made_with = args, options

    try:  # what is made for another module's arguments is to be made here as well
        part.__init__ = remember
        return make(record, "cpu", kind, requires_grad=True, training=training)
    finally:
        part.__init__ = start


def check_error(outcome, case, theirs, ours):
    """The class of one error."""
    try:
        theirs()
    except Exception as error:
        expected = case.error_type
        expected = expected if isinstance(error, expected) else type(error)
    else:
        return
    outcome.attempt("error", lambda: refuses(ours, expected, case))


def run_both(record, mine, sample, training):
    """One module under both."""
    import torch as theirs

    import lantern.torch as ours

    start, forward = sample.constructor_input, sample.forward_input
    theirs.manual_seed(0)
    other = record.module_cls(*start.args, **start.kwargs)
    module = mine(*converted(start.args), **converted(start.kwargs))
    if str(module) != str(other):
        raise DifferenceError(f"text: {str(module)!r}, PyTorch has {str(other)!r}")
    args, options = copied(forward.args), copied(forward.kwargs)
    other, module = other.to(theirs.float64), module.to(ours.float64).to(PLACE[0])
    if record.is_lazy:
        other(*args, **options)
        module(*converted(args), **converted(options))
    other.train(training)
    module.train(training)
    state = {name: converted(x) for name, x in other.state_dict().items()}
    module.load_state_dict(state)
    twin = copy.deepcopy(other)
    expected = other(*args, **options)
    random = not same(expected, twin(*args, **options))
    parts = args, options, list(other.parameters())
    wanted = gradients(theirs, parts, expected)
    args, options = converted(forward.args), converted(forward.kwargs)
    results = module(*args, **options)
    compare(results, expected, "result", random)
    states = [list(m.state_dict().values()) for m in (module, other)]
    compare(*states, "state", random)
    if not random:
        parts = args, options, list(module.parameters())
        compare(gradients(ours, parts, results), wanted, "gradient", False, 1e-5)


def check_optimiser(record):
    """All of one optimiser: some steps with each choice of options, and errors."""
    import torch as theirs

    import lantern.torch as ours

    name = f"optim.{record.optim_cls.__name__}"
    outcome = Outcome(name)
    mine = lookup(ours, name)
    if mine is None:
        return outcome
    for sample in record.optim_inputs_func("cpu"):
        outcome.attempt("steps", partial(steps_alike, record.optim_cls, mine, sample))
    for case in record.optim_error_inputs_func("cpu", theirs.float64):
        sample = case.optimizer_error_input

        def act(torch, cls, change, sample=sample, case=case):
            given = sample.params
            given = parameters(torch) if given is None else change(given)
            optimizer = cls(given, **change(sample.kwargs))
            if case.error_on.name != "CONSTRUCTION_ERROR":
                optimizer.step()

        check_error(
            outcome,
            case,
            partial(act, theirs, record.optim_cls, copied),
            partial(act, ours, mine, converted),
        )
    return outcome


def parameters(torch):
    """Some parameters with gradients."""
    random = np.random.default_rng(0)
    found = []
    for shape in ((5, 4), (4,), (3, 2)):
        device = "cpu" if torch.__name__ == "torch" else PLACE[0]
        values = torch.from_numpy(random.normal(size=shape)).to(device)
        w = torch.nn.Parameter(values)
        w.grad = torch.zeros_like(w.detach())
        found.append(w)
    return found


def steps_alike(cls, mine, sample):
    """The parameters of a small problem after each of some steps, under both."""
    import torch as theirs

    import lantern.torch as ours

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = trained(theirs, cls, sample.kwargs)
        found = trained(ours, mine, converted(sample.kwargs))
    compare(found, expected, "parameters", False, 1e-9)


def trained(torch, cls, options):
    """The values of parameters after each step."""
    options = dict(options)
    found = parameters(torch)
    if cls.__name__ == "Muon":
        found = found[::2]  # it takes matrices only
    optimizer = cls(found, **options)

    def closure():
        optimizer.zero_grad()
        total = sum(((w.sin() - 0.3) ** 2).sum() for w in found)
        if options.get("maximize"):
            total = -total
        total.backward()
        return total

    values = []
    for _ in range(6):
        optimizer.step(closure)
        values.append([w.detach().clone() for w in found])
    return values
