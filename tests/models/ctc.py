"""Random cases of CTC under both libraries: empty, repeated and impossible labels."""

import numpy as np

import lantern.torch as ours


def case(seed):
    """Scores, labels, lengths and options.

    Few classes make labels repeat; some labels are empty, some longer than what was
    heard, and some utterances have no time at all.
    """
    rng = np.random.default_rng(seed)
    t, n, classes = (int(rng.integers(*ends)) for ends in ((1, 14), (1, 5), (2, 6)))
    blank = int(rng.integers(0, classes))
    letters = [c for c in range(classes) if c != blank]
    heard = rng.integers(0, t + 1, n)
    said = rng.integers(0, 1 + int(rng.integers(0, t + 2)), n)
    labels = [rng.choice(letters, length) for length in said]
    if rng.random() < 0.5:
        targets = np.concatenate(labels).astype(np.int64)
    else:
        targets = np.full((n, max(1, *said)), letters[0])
        for row, label in zip(targets, labels, strict=True):
            row[: len(label)] = label
    options = {
        "blank": blank,
        "reduction": str(rng.choice(["none", "sum", "mean"])),
        "zero_infinity": bool(rng.random() < 0.5),
    }
    return rng.normal(size=(t, n, classes)) * 2, targets, heard, said, options


def result(torch, scores, targets, heard, said, options):
    """The losses, and the gradient by the scores."""
    x = torch.tensor(scores, requires_grad=True)
    lengths = torch.tensor(heard), torch.tensor(said)
    losses = torch.nn.functional.ctc_loss(
        torch.log_softmax(x, 2), torch.tensor(targets), *lengths, **options
    )
    losses.sum().backward()
    return losses.detach().numpy(), x.grad.numpy()


def check(seed):
    """Raise unless both libraries agree about a case."""
    import torch

    found = result(ours, *case(seed))
    wanted = result(torch, *case(seed))
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
