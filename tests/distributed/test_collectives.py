"""Collectives and their derivatives, against differences of the whole program."""

import numpy as np
import pytest

import lantern
import lantern.distributed as dist
from lantern.errors import DistributedError, OptionError, ShapeError
from tests.ranks import needs_mpi, succeed

pytestmark = pytest.mark.usefixtures("probe")

# Every rank runs a program of its own part x of all the inputs. The derivative of what
# is differentiated, with respect to one rank's input, is compared with differences of
# what all ranks together compute when that rank's input alone is moved.
DERIVATIVES = """
import numpy as np, lantern, lantern.distributed as dist

dist.init(timeout=60)
r, n = dist.rank(), dist.world_size()
rng = np.random.default_rng(5)
ALL, W = rng.uniform(0.5, 1.5, (n, n, 2)), rng.normal(size=(n, n, 2))
ring = [(i, (i + 1) % n) for i in range(n)]
pair = dist.group([0, n - 1])

def among_two(x):
    return dist.all_reduce(x, group=pair) if r in (0, n - 1) else x

def letters(x):
    after = dist.send(x * x, (r + 1) % n) if r != n - 1 else 0.0
    like = 0.0 * x
    got = dist.recv(like, r - 1) if r else like
    return got * 3.0 + after

PROGRAMS = {
    "sum": lambda x: dist.all_reduce(x * x),
    "mean": lambda x: dist.all_reduce(x * x, "mean"),
    "max": lambda x: dist.all_reduce(x * x, "max"),
    "min": lambda x: dist.all_reduce(x * x, "min"),
    "prod": lambda x: dist.all_reduce(x, "prod"),
    "twice": lambda x: dist.all_reduce(x * dist.all_reduce(x * x)),
    "reduce": lambda x: dist.reduce(x * x, root=n - 1),
    "broadcast": lambda x: dist.broadcast(x * x, root=1),
    "all_gather": lambda x: dist.all_gather(x * x) * W[:, None],
    "gather": lambda x: dist.gather(x * x, root=1),
    "scatter": lambda x: dist.scatter(x * x, root=1),
    "reduce_scatter": lambda x: dist.reduce_scatter(x * x),
    "all_to_all": lambda x: dist.all_to_all(x * x),
    "permute": lambda x: dist.permute(x * x, ring),
    "open": lambda x: dist.permute(x * x, ring[:-1]),
    "pmean": lambda x: dist.pmean({"a": x * x})["a"],
    "group": among_two,
    "letters": letters,
}

def own_loss(program):
    return lambda x: (program(x) ** 2).sum() * (1.0 + r)

def differences(loss, total):
    found = np.zeros_like(ALL)
    for s in range(n):
        for place in np.ndindex(n, 2):
            values = []
            for h in (1e-5, -1e-5):
                x = ALL[r].copy()
                if s == r:
                    x[place] += h
                values.append(total(loss(x)))
            found[(s, *place)] = (values[0] - values[1]) / 2e-5
    return found[r]
"""


@needs_mpi
def test_each_collective_is_differentiated_as_the_sum_of_the_ranks_losses(tmp_path):
    succeed(
        """
        for name, program in PROGRAMS.items():
            loss = own_loss(program)
            mine = lantern.grad(loss)(ALL[r])
            true = differences(loss, dist.all_reduce)
            assert np.allclose(mine, true, rtol=1e-6, atol=1e-8), (name, r, mine, true)
            # Forward mode: all ranks' tangents at once, the same number both ways.
            t = W[r] + 0.5
            dot = dist.all_reduce(lantern.jvp(loss, (ALL[r],), (t,))[1])
            assert np.isclose(dot, dist.all_reduce((mine * t).sum())), name
            # And the derivative's own derivative, along the same tangents.
            def slope(x):
                return (lantern.grad(loss)(x) * t).sum()
            second = lantern.grad(slope)(ALL[r])
            true = differences(slope, dist.all_reduce)
            assert np.allclose(second, true, rtol=1e-5, atol=1e-6), (name, r)
        print("all", r)
        """,
        tmp_path,
        3,
        prelude=DERIVATIVES,
    )


@needs_mpi
def test_arrays_on_gpus_go_by_nccl(tmp_path):
    """On stand-ins for CuPy and NCCL: values and both derivatives are the host's."""
    succeed(
        """
        from tests.backends import StandIn

        gpu, (host_all, host_w) = StandIn(), (ALL, W)
        t = host_w[r] + 0.5
        for name, program in PROGRAMS.items():
            W, loss = host_w, own_loss(program)
            true = loss(ALL[r]), lantern.grad(loss)(ALL[r])
            slope = lantern.jvp(loss, (ALL[r],), (t,))[1]
            W, x = gpu.array(host_w), gpu.array(host_all[r])
            with gpu.without_copies(uploads=True, sizes=name == "letters"):
                value, gradient = loss(x), lantern.grad(loss)(x)
                mine = lantern.jvp(loss, (x,), (gpu.array(t),))[1]
            assert type(gradient) is gpu.kind, name
            assert np.allclose(gpu.host(value), true[0], rtol=1e-14), name
            assert np.allclose(gpu.host(gradient), true[1], rtol=1e-14), name
            assert np.allclose(gpu.host(mine), slope, rtol=1e-14), name
        for kind in "float16 float32 complex128 int8 int16 int64 uint8 bool".split():
            x = gpu.array(np.ones((2, 3), kind))
            z = gpu.host(dist.all_reduce(x))
            assert z.dtype == kind and (z == (1 if kind == "bool" else n)).all(), kind
            z = gpu.host(dist.reduce(x, root=1))
            assert (z != 0).all() if r == 1 else (z == 0).all(), kind
        """,
        tmp_path,
        3,
        prelude=DERIVATIVES,
    )


@needs_mpi
def test_what_nccl_cannot_do_is_said_and_who_does_not_come_is_named(tmp_path):
    succeed(
        """
        import numpy as np, lantern.distributed as dist, lantern
        from tests.backends import StandIn
        from tests.fake_nccl import Event, nccl

        dist.init(timeout=60)
        gpu, r = StandIn(), dist.rank()

        def said(call):
            try:
                call()
            except lantern.errors.LanternError as error:
                return str(error)

        z = gpu.array(np.ones(2, complex))
        assert "does not combine complex128 by 'max'" in said(
            lambda: dist.all_reduce(z, "max")
        )
        x = gpu.array(np.ones(2))
        dist.all_reduce(x)
        group = dist.init().everyone.on_gpus(x)
        dist.barrier()
        Event.done = False  # as if the other ranks' launches were missing
        dist.init(timeout=0.3)
        assert "Timed out after 0.3 s" in said(lambda: dist.all_reduce(x))
        assert group.comm.aborted
        nccl.available = False
        dist.init(timeout=60).everyone.gpus = None
        assert "CuPy has found no NCCL" in said(lambda: dist.all_reduce(x))
        """,
        tmp_path,
        2,
    )


@needs_mpi
def test_a_replicated_loss_counts_once(tmp_path):
    """Megatron's block: columns of one matrix and rows of the next on each rank."""
    succeed(
        """
        import numpy as np, lantern, lantern.distributed as dist

        dist.init(timeout=60)
        r, n = dist.rank(), dist.world_size()
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(5, 4)), rng.normal(size=(5, 4))
        a, b = rng.normal(size=(4, 6)), rng.normal(size=(6, 4))
        mine = slice(r * 6 // n, (r + 1) * 6 // n)

        def whole(a, b, x):
            return (((np.tanh(x @ a) @ b) - y) ** 2).mean()

        def block(a, b, x):
            x = dist.replicated(x)
            z = dist.all_reduce(np.tanh(x @ a) @ b, loss="replicated")
            return ((z - y) ** 2).mean()

        def gathered(a, b, x):
            x = dist.replicated(x)
            h = dist.all_gather(np.tanh(x @ a).T, loss="replicated").reshape(6, 5).T
            z = dist.replicated(h)[:, mine] @ b
            return ((dist.all_reduce(z, "sum", loss="replicated") - y) ** 2).mean()

        def first_shared(x):
            z = dist.broadcast(x * (r + 1.0), root=1, loss="replicated")
            return (z**3).sum()

        true = lantern.grad(whole, argnums=(0, 1, 2))(a, b, x)
        for program in (block, gathered):
            gradients = lantern.grad(program, argnums=(0, 1, 2))
            da, db, dx = gradients(a[:, mine], b[mine], x)
            assert np.allclose(da, true[0][:, mine], rtol=0, atol=1e-14)
            assert np.allclose(db, true[1][mine], rtol=0, atol=1e-14)
            assert np.allclose(dx, true[2], rtol=0, atol=1e-14)
        t = rng.normal(size=a.shape)
        hvp = lantern.hvp(lambda a: whole(a, b, x), a, t)
        part = lantern.hvp(lambda a: block(a, b[mine], x), a[:, mine], t[:, mine])
        assert np.allclose(part, hvp[:, mine], rtol=0, atol=1e-13)
        dx = lantern.grad(first_shared)(x)
        assert np.allclose(dx, 2.0 * 3.0 * (2.0 * x) ** 2 * (r == 1))
        """,
        tmp_path,
        2,
    )


@needs_mpi
def test_kinds_of_arrays_and_groups(tmp_path):
    succeed(
        """
        import numpy as np, lantern.distributed as dist

        dist.init(timeout=60)
        r, n = dist.rank(), dist.world_size()
        for kind in "float16 float32 float64 complex128 int8 int64 uint8 bool".split():
            x = np.ones((2, 3), kind)
            z = dist.all_reduce(x)
            assert z.dtype == kind and z.shape == (2, 3)
            assert (z == (1 if kind == "bool" else n)).all(), kind
            assert dist.all_gather(x).dtype == kind
        assert type(dist.all_reduce(2.0)) is float
        assert dist.all_reduce(np.arange(6.0).reshape(2, 3).T).tolist() == (
            n * np.arange(6.0).reshape(2, 3).T
        ).tolist()
        assert dist.all_reduce(np.empty((0, 3))).shape == (0, 3)
        assert dist.all_reduce(float(r), "max") == n - 1
        assert dist.all_reduce(r + 1, "prod") == 6
        some = dist.group([2, 0])
        assert (some is None) == (r == 1)
        if some is not None:
            assert dist.world_size(some) == 2
            assert dist.rank(some) == (0 if r == 2 else 1)
            assert dist.broadcast(float(r), root=0, group=some) == 2.0
        dist.barrier()
        assert dist.pmean([float(r), {"a": np.array([r, 1.0])}]) is not None
        """,
        tmp_path,
        3,
    )


class TestAlone:
    """In one process a program of many runs as it is."""

    def test_every_collective_is_the_identity(self):
        x = np.array([[1.0, 2.0]])
        for z in (
            dist.all_reduce(x),
            dist.all_reduce(x, "max"),
            dist.reduce(x),
            dist.broadcast(x),
            dist.all_to_all(x),
            dist.permute(x, [(0, 0)]),
            dist.replicated(x),
            dist.all_gather(x)[0],
            dist.gather(x)[0],
            dist.scatter(x)[None],
            dist.reduce_scatter(x)[None],
        ):
            assert z.tolist() == x.tolist()

    def test_a_letter_to_oneself_is_differentiated(self):
        def program(x):
            after = dist.send(x * x, to=0)
            return 3.0 * dist.recv(0.0 * x, source=0) + after

        assert lantern.value_and_grad(program)(2.0) == (12.0, 12.0)

    @pytest.mark.parametrize(
        ("error", "words", "call"),
        [
            (DistributedError, "root is 1", lambda: dist.broadcast(1.0, root=1)),
            (ShapeError, "one row", lambda: dist.all_to_all(np.ones((2, 1)))),
            (OptionError, "op is 'xor'", lambda: dist.all_reduce(1.0, "xor")),
            (OptionError, "loss is 'mean'", lambda: dist.all_reduce(1.0, loss="mean")),
            (OptionError, "twice", lambda: dist.permute(1.0, [(0, 0), (0, 0)])),
            (OptionError, "ranks 0 to 0", lambda: dist.group([1])),
            (DistributedError, "sent nothing", lambda: dist.recv(1.0, source=0)),
        ],
    )
    def test_what_is_wrong_is_said(self, error, words, call):
        with pytest.raises(error, match=words):
            call()
