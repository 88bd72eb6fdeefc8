"""examples/treelstm.py: the same gradients and losses as PyTorch; the command."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lantern import grad, jvp, value_and_grad

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = EXAMPLES / "treelstm.py"


@pytest.fixture(scope="module")
def treelstm():
    sys.path.insert(0, str(EXAMPLES))
    try:
        import treelstm

        return treelstm
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def trees(treelstm):
    return treelstm.read_trees(treelstm.DATA.read_text())[0]


def small(treelstm, trees, dtype=np.float64):
    """The model with larger weights than at the start, so that all of it matters."""
    words = 1 + max(t.word for tree in trees for t in tree.nodes())
    course, table = treelstm.begin(words, 1, dtype)
    rng = np.random.default_rng(2)
    for name, w in course.weights.items():
        course.weights[name] = rng.uniform(-0.2, 0.2, w.shape).astype(dtype)
    return course, table


class Peer:
    """The paper's model with its 22 parameters, in PyTorch, one node after another."""

    def __init__(self, weights, table):
        self.torch = torch = pytest.importorskip(
            "torch", reason="compares with PyTorch"
        )
        split = {
            "leaf": ("leaf_W", 3, 1),
            "left": ("left_U", 5, 1),
            "right": ("right_U", 5, 1),
            "leaf_bias": ("leaf_b", 3, 0),
            "bias": ("node_b", 4, 0),
            "out": ("out_W", 1, 1),
            "out_bias": ("out_b", 1, 0),
        }
        self.parameters = {}
        for name, (stem, parts, axis) in split.items():
            for k, part in enumerate(np.split(weights[name], parts, axis)):
                tensor = torch.tensor(part, requires_grad=True)
                self.parameters[f"{stem}{k}"] = tensor
        self.table = torch.tensor(table)
        self.layout = split

    def loss(self, trees):
        torch, p = self.torch, self.parameters
        total = 0

        def visit(tree):
            nonlocal total
            if tree.below is None:
                x = self.table[tree.word]
                u, i, o = (x @ p[f"leaf_W{k}"] + p[f"leaf_b{k}"] for k in range(3))
                c = torch.sigmoid(i) * torch.tanh(u)
            else:
                (h_l, c_l), (h_r, c_r) = map(visit, tree.below)
                u, i, o, f_l, f_r = (
                    h_l @ p[f"left_U{k}"] + h_r @ p[f"right_U{k}"] + p[f"node_b{b}"]
                    for k, b in enumerate((0, 1, 2, 3, 3))
                )
                c = torch.sigmoid(i) * torch.tanh(u)
                c = c + torch.sigmoid(f_l) * c_l + torch.sigmoid(f_r) * c_r
            h = torch.sigmoid(o) * torch.tanh(c)
            scores = h @ p["out_W0"] + p["out_b0"]
            total = total - torch.log_softmax(scores, 0)[tree.score]
            return h, c

        for tree in trees:
            visit(tree)
        return total

    def joined(self, part):
        return {
            name: np.concatenate(
                [part(self.parameters[f"{stem}{k}"]).numpy() for k in range(parts)],
                axis,
            )
            for name, (stem, parts, axis) in self.layout.items()
        }

    def epoch(self, trees, batch, lr):
        torch = self.torch
        parameters = list(self.parameters.values())
        squares = [torch.zeros_like(p) for p in parameters]
        total = 0.0
        for start in range(0, len(trees), batch or 1):
            value = self.loss(trees[start : start + (batch or 1)])
            for p in parameters:
                p.grad = None
            value.backward()
            with torch.no_grad():
                for p, s in zip(parameters, squares, strict=True):
                    if p.grad is None:  # a tree of one word uses no inner node
                        continue
                    s += p.grad * p.grad
                    p -= lr * p.grad / torch.sqrt(s + 1e-8)
            total += value.item()
        return total / len(trees)


def test_it_has_22_parameters_of_361805_numbers(treelstm, trees):
    peer = Peer(*_weights_and_table(treelstm, trees))
    assert len(peer.parameters) == 22
    assert sum(p.numel() for p in peer.parameters.values()) == 361_805


def _weights_and_table(treelstm, trees):
    course, table = small(treelstm, trees)
    return course.weights, table


@pytest.mark.parametrize("cell", ["plain", "own"])
@pytest.mark.parametrize("batch", [False, True])
def test_gradient_of_three_trees_is_pytorchs(treelstm, trees, batch, cell):
    weights, table = _weights_and_table(treelstm, trees)
    some = [trees[0], trees[6], trees[22]]
    value, gradient = value_and_grad(treelstm.loss)(weights, table, some, batch, cell)
    peer = Peer(weights, table)
    expected = peer.loss(some)
    expected.backward()
    np.testing.assert_allclose(value, expected.item(), rtol=1e-12)
    for name, g in peer.joined(lambda p: p.grad).items():
        np.testing.assert_allclose(gradient[name], g, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cell", ["plain", "own"])
@pytest.mark.parametrize("batch", [False, True])
def test_gradient_of_three_trees_is_that_of_differences(treelstm, trees, batch, cell):
    weights, table = _weights_and_table(treelstm, trees)
    some = [trees[0], trees[6], trees[22]]
    _, gradient = value_and_grad(treelstm.loss)(weights, table, some, batch, cell)
    rng, eps = np.random.default_rng(3), 1e-5
    for name, w in weights.items():
        v = rng.standard_normal(w.shape)
        up, down = (
            treelstm.loss(weights | {name: w + s * v}, table, some, batch, cell)
            for s in (eps, -eps)
        )
        slope = float(np.asarray(up) - np.asarray(down)) / (2 * eps)
        np.testing.assert_allclose((gradient[name] * v).sum(), slope, rtol=1e-6)


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-8), ("float32", 1e-3)])
@pytest.mark.parametrize(("batch", "cell"), [(0, "own"), (5, "plain"), (20, "own")])
def test_losses_of_an_epoch_are_pytorchs(treelstm, trees, dtype, rtol, batch, cell):
    words = 1 + max(t.word for tree in trees for t in tree.nodes())
    course, table = treelstm.begin(words, 0, np.dtype(dtype))
    peer = Peer(course.weights, table)
    treelstm.train_epoch(course, table, trees, batch, 0.05, cell)
    np.testing.assert_allclose(course.losses, [peer.epoch(trees, batch, 0.05)], rtol)


def test_second_derivatives_of_both_cells_agree(treelstm, trees):
    weights, table = _weights_and_table(treelstm, trees)
    rng = np.random.default_rng(3)
    v = {name: rng.standard_normal(w.shape) for name, w in weights.items()}

    def slope(cell, batch):
        def along(weights):
            g = grad(treelstm.loss)(weights, table, trees[6:8], batch, cell)
            return sum((g[name] * v[name]).sum() for name in g)

        return grad(along)(weights)

    expected = slope("plain", False)
    for cell, batch in (("own", False), ("own", True), ("plain", True)):
        for name, h in slope(cell, batch).items():
            np.testing.assert_allclose(h, expected[name], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("batch", [False, True])
def test_forward_mode_along_each_weight_is_the_gradients(treelstm, trees, batch):
    weights, table = _weights_and_table(treelstm, trees)
    some = trees[6:8]
    _, gradient = value_and_grad(treelstm.loss)(weights, table, some, batch, "own")
    rng = np.random.default_rng(3)
    for name, w in weights.items():
        v = rng.standard_normal(w.shape)

        def loss(w, name=name):
            return treelstm.loss(weights | {name: w}, table, some, batch, "own")

        _, slope = jvp(loss, (w,), (v,))
        np.testing.assert_allclose(slope, (gradient[name] * v).sum(), rtol=1e-9)


def test_both_formats_read_the_same_trees(treelstm):
    brackets = "(3 (2 a) (4 (1 b) (2 a)))\n(0 c)\n"
    rows = "2\n5\n3 2 4 1 2\n-1 0 -1 1 0\n1 -1 3 -1 -1\n2 -1 4 -1 -1\n1\n0\n2\n-1\n-1\n"

    def flat(trees):
        return [[(t.score, t.word) for t in tree.nodes()] for tree in trees]

    assert flat(treelstm.read_trees(brackets)[0]) == flat(treelstm.read_trees(rows)[0])
    assert treelstm.read_trees(brackets)[1] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "text",
    [
        "(3 (2 a)",
        "(3 a) b",
        "(7 a)",
        "3 a",
        "(3 (2 a) (2 b) (2 c))",
        "(x a)",
        "(" * 400,
        "(3 (2 " * 400,
        "1\n2\n3 2\n-1 0\n",
        "1\n1\n3\n-1\n0\n0\n",
        "1\n3\n3 2 2\n-1 0 0\n1 -1\n2 -1\n",
        "1\n1\n9\n0\n-1\n-1\n",
    ],
)
def test_damaged_files_are_refused(treelstm, text):
    with pytest.raises(ValueError, match=r"line|tree"):
        treelstm.read_trees(text)


def run(*options, cwd):
    environment = os.environ | {
        "PYTHONPATH": str(EXAMPLES.parent),
        "PYTHONIOENCODING": "utf-8",
    }
    return subprocess.run(
        [sys.executable, str(PROGRAM), *options],
        cwd=cwd,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


class TestCommand:
    @pytest.fixture(autouse=True)
    def _extras(self):
        for name in ("matplotlib", "tqdm"):
            pytest.importorskip(name, reason="the extra 'examples'")

    def test_learns_and_draws(self, tmp_path):
        result = run("--epochs=6", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert "NOTE: no --data was given" in result.stderr
        assert float(result.stdout.split()[5]) < 3
        for name in ("treelstm.png", "treelstm-tree.png"):
            assert (tmp_path / name).stat().st_size > 10_000

    def test_goes_on_from_a_checkpoint_as_if_never_stopped(self, tmp_path):
        whole = run("--epochs=4", "--checkpoint=a.npz", cwd=tmp_path)
        assert whole.returncode == 0, whole.stderr
        run("--epochs=2", "--checkpoint=b.npz", cwd=tmp_path)
        result = run("--epochs=4", "--checkpoint=b.npz", cwd=tmp_path)
        assert "goes on after epoch 2" in result.stdout
        with np.load(tmp_path / "a.npz") as a, np.load(tmp_path / "b.npz") as b:
            assert sorted(a) == sorted(b)
            for name in a:
                np.testing.assert_array_equal(a[name], b[name])

    def test_refuses_other_checkpoints(self, tmp_path):
        path = tmp_path / "c.npz"
        assert run("--epochs=1", "--checkpoint=c.npz", cwd=tmp_path).returncode == 0
        whole = path.read_bytes()
        for content, options in [
            (whole[: len(whole) // 2], []),
            (b"nothing", []),
            (whole, ["--seed=5"]),
        ]:
            path.write_bytes(content)
            result = run("--epochs=2", "--checkpoint=c.npz", *options, cwd=tmp_path)
            assert result.returncode == 2
            assert "cannot go on from c.npz" in result.stderr
            assert "Traceback" not in result.stderr
            assert path.read_bytes() == content

    def test_refuses_missing_data(self, tmp_path):
        result = run("--data=missing.txt", cwd=tmp_path)
        assert result.returncode == 2
        assert "cannot read trees from missing.txt" in result.stderr
