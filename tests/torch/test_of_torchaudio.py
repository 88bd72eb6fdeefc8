"""torchaudio's compiled operations, written anew: beside all paths there are."""

from itertools import product

import numpy as np
import pytest

import lantern.torch as torch

torch.ops.load_library("site-packages/torchaudio/lib/_torchaudio.abi3.so")
torch.ops.load_library("site-packages/torchaudio/lib/libtorchaudio.abi3.so")
audio = torch.ops.torchaudio
RNG = np.random.default_rng(5)


def test_the_library_is_there():
    assert torch.ops._torchaudio.is_align_available()
    assert torch.ops._torchaudio.cuda_version() is None


def test_a_filter_feeds_back_what_it_gave():
    x, weights = RNG.normal(size=(2, 3, 9)), RNG.normal(size=(3, 4))
    weights[:, -1] = 1
    found = torch.zeros(2, 3, 12, dtype=torch.float64)
    audio._lfilter_core_loop(torch.tensor(x), torch.tensor(weights), found)
    expected = np.zeros((2, 3, 12))
    for n, c, t in np.ndindex(x.shape):
        before = sum(weights[c, i] * expected[n, c, t + i] for i in range(3))
        expected[n, c, t + 3] = x[n, c, t] - before
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_an_amplifier_is_overdriven():
    x, driven = (torch.tensor(RNG.normal(size=(2, 5))) for _ in range(2))
    found = torch.zeros(2, 5, dtype=torch.float64)
    audio._overdrive_core_loop(x, driven, found[:, 0], found[:, 1], found)
    for c in range(2):
        before = after = 0.0
        for t in range(5):
            after = driven[c, t].item() - before + 0.995 * after
            before = driven[c, t].item()
            assert found[c, t].item() == pytest.approx(
                x[c, t].item() / 2 + after * 0.75
            )


def collapsed(path):
    kept = [c for i, c in enumerate(path) if i == 0 or c != path[i - 1]]
    return [c for c in kept if c != 0]


@pytest.mark.parametrize("labels", [[1], [2, 2], [1, 2, 1], [2, 1, 1]])
def test_the_most_likely_path_is_found(labels):
    scores = torch.tensor(RNG.normal(size=(1, 5, 3))).log_softmax(-1)
    ways = [p for p in product(range(3), repeat=5) if collapsed(p) == labels]
    best = max(ways, key=lambda p: sum(scores[0, t, c].item() for t, c in enumerate(p)))
    lengths = torch.tensor([5]), torch.tensor([len(labels)])
    path, same = audio.forced_align(
        scores, torch.tensor([labels], dtype=torch.int32), *lengths, 0
    )
    assert tuple(path[0].tolist()) == best
    assert torch.equal(same, scores)


def test_labels_need_a_frame_each():
    scores = torch.zeros(1, 2, 3)
    for labels in ([1, 1], [1, 2, 1]):
        with pytest.raises(RuntimeError, match="at least"):
            audio.forced_align(scores, torch.tensor([labels]), None, None, 0)
    with pytest.raises(RuntimeError, match="one at a time"):
        audio.forced_align(scores.expand(2, 2, 3), torch.tensor([[1]]), None, None, 0)


def cost(scores, labels, blank):
    """A transducer's cost, as the sum over all its paths."""
    frames, n = len(scores), len(labels)
    total = 0.0
    # a path takes every label at some frame, and every frame's blank in the end
    for at in product(range(frames), repeat=n):
        if list(at) == sorted(at):
            score = 0.0
            for t in range(frames):
                for u in (u for u in range(n) if at[u] == t):
                    score += scores[t, u, labels[u]]
                score += scores[t, sum(a <= t for a in at), blank]
            total += np.exp(score)
    return -np.log(total)


CASES = [([4, 3], [2, 1], True), ([4, 4], [2, 2], False), ([1, 2], [0, 1], True)]


@pytest.mark.parametrize(("frames", "labels", "fused"), CASES)
def test_a_transducer_costs_what_all_paths_do(frames, labels, fused):
    x = RNG.normal(size=(2, 4, 3, 4))
    names = torch.tensor([[1, 2], [3, 1]], dtype=torch.int32)
    rest = (names, torch.tensor(frames), torch.tensor(labels), 0)

    def costs(x):
        scores = torch.tensor(x).log_softmax(-1).numpy() if fused else x
        return [
            cost(scores[k, : frames[k]], names[k, : labels[k]].tolist(), 0)
            for k in range(2)
        ]

    found, gradient = audio.rnnt_loss_forward(torch.tensor(x), *rest, -1.0, fused)
    np.testing.assert_allclose(found.numpy(), costs(x), rtol=1e-12)
    for k in range(2):
        v = np.zeros_like(x)
        v[k] = RNG.normal(size=x.shape[1:])
        slope = (costs(x + 1e-6 * v)[k] - costs(x - 1e-6 * v)[k]) / 2e-6
        assert (gradient.numpy() * v).sum() == pytest.approx(slope, rel=1e-6)
    clipped = audio.rnnt_loss_forward(torch.tensor(x), *rest, 0.1, fused)[1]
    assert torch.equal(clipped, gradient.clamp(-0.1, 0.1))
