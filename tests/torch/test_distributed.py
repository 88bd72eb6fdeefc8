"""PyTorch's names for several processes: what one process gives, several give."""

import pytest

import lantern.torch as torch
import lantern.torch.distributed as dist
from tests.ranks import needs_mpi, succeed

COLLECTIVES = """
    import pickle
    from datetime import timedelta
    import pytest
    import lantern.torch as torch
    import lantern.torch.distributed as dist

    assert not dist.is_initialized()
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.get_rank()
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo")
    r, n = dist.get_rank(), dist.get_world_size()
    every = range(n)
    full = lambda value, *shape: torch.full(shape or (2, 3), float(value))
    same = torch.equal

    for later in (False, True):
        def done(work):
            assert (work is not None) == later
            if later:
                assert work.wait() and work.is_completed()

        x = full(r + 1)
        done(dist.all_reduce(x, async_op=later))
        assert same(x, full(6))
        x = full(r + 1)[:, ::2]  # not contiguous
        done(dist.all_reduce(x, dist.ReduceOp.PRODUCT, async_op=later))
        assert same(x, full(6, 2, 2))
        x = full(r)
        done(dist.reduce(x, 1, dist.ReduceOp.MAX, async_op=later))
        assert r != 1 or same(x, full(2))
        x = full(r)
        done(dist.broadcast(x, 2, async_op=later))
        assert same(x, full(2))
        parts = [torch.empty(2, 3) for _ in every]
        done(dist.all_gather(parts, full(r), async_op=later))
        assert all(same(parts[i], full(i)) for i in every)
        whole = torch.empty(6, 3)
        done(dist.all_gather_into_tensor(whole, full(r), async_op=later))
        assert same(whole, torch.cat(parts))
        mine = [torch.empty(2, 3) for _ in every] if r == 1 else None
        done(dist.gather(full(r), mine, dst=1, async_op=later))
        assert r != 1 or all(same(mine[i], full(i)) for i in every)
        x = torch.empty(2, 3)
        given = [full(i) for i in every] if r == 0 else None
        done(dist.scatter(x, given, async_op=later))
        assert same(x, full(r))
        done(dist.reduce_scatter(x, [full(r + i) for i in every], async_op=later))
        assert same(x, full(3 + 3 * r))
        given = torch.cat([full(i) for i in every])
        done(dist.reduce_scatter_tensor(x, given, async_op=later))
        assert same(x, full(3 * r))
        parts = [torch.empty(i + 1) for i in every]
        given = [full(10 * r + i, r + 1) for i in every]
        done(dist.all_to_all(parts, given, async_op=later))
        assert all(same(parts[i], full(10 * i + r, i + 1)) for i in every)
        out = torch.empty(n)
        given = torch.arange(float(n)) + 10 * r
        done(dist.all_to_all_single(out, given, async_op=later))
        assert out.tolist() == [10.0 * i + r for i in every]
        done(dist.barrier(async_op=later))

    objects = [None] * n
    dist.all_gather_object(objects, {"rank": r, "x": full(r)})
    assert [o["rank"] for o in objects] == list(every)
    objects = [r, "a"]
    dist.broadcast_object_list(objects, src=1)
    assert objects == [1, "a"]
    got = [None]
    dist.scatter_object_list(got, ["a", "b", "c"] if r == 0 else None)
    assert got == ["abc"[r]]
    gathered = [None] * n if r == 2 else None
    dist.gather_object((r,), gathered, dst=2)
    assert r != 2 or gathered == [(0,), (1,), (2,)]

    if r == 0:
        dist.send(full(5), 1)
        dist.send(full(7), 2, tag=3)
        dist.isend(full(6), 1, tag=4).wait()
    elif r == 1:
        x, y = full(0), full(0)
        later = dist.irecv(y, 0, tag=4)
        assert dist.recv(x) == 0 and same(x, full(5))
        later.wait()
        assert same(y, full(6))
    else:
        x = full(0)
        dist.recv(x, 0, tag=3)
        assert same(x, full(7))
    x = full(0)
    ring = [
        dist.P2POp(dist.isend, full(r), (r + 1) % n),
        dist.P2POp(dist.irecv, x, (r - 1) % n),
    ]
    for work in dist.batch_isend_irecv(ring):
        work.wait()
    assert same(x, full((r - 1) % n))

    pair = dist.new_group([0, 2])
    x = full(r)
    if r != 1:
        assert dist.get_world_size(pair) == 2 and dist.get_rank(pair) == r // 2
        assert dist.get_global_rank(pair, 1) == 2
        dist.all_reduce(x, group=pair)
        assert same(x, full(2))
        dist.broadcast(x, 2, group=pair)
    else:
        assert dist.get_rank(pair) == -1
        with pytest.warns(UserWarning, match="does not belong"):
            dist.all_reduce(x, group=pair)
    dist.monitored_barrier()
    said = "Rank 2 successfully reached" if r == 2 else "Rank 1 failed to pass"
    with pytest.raises(RuntimeError, match=said):
        if r == 1:
            import time; time.sleep(0.6)
            raise RuntimeError(said)
        dist.monitored_barrier(timeout=timedelta(seconds=0.3))
    dist.barrier()

    store = dist.TCPStore("127.0.0.1", 0, is_master=True) if r == 0 else None
    port = [store.port if store else None]
    dist.broadcast_object_list(port)
    store = store or dist.TCPStore("127.0.0.1", port[0])
    assert store.add("n", 1) in (1, 2, 3)
    store.set(f"key{r}", f"value{r}")
    assert store.get(f"key{(r + 1) % n}") == f"value{(r + 1) % n}".encode()
    dist.barrier()
    assert store.add("n", 0) == 3
    with pytest.raises(RuntimeError, match="wait timeout"):
        store.wait(["never"], timedelta(milliseconds=20))
    dist.barrier()
    if r:
        store.close()
    assert pickle.loads(pickle.dumps(dist.group.WORLD)) is dist.group.WORLD
    for wrong, error in (
        (lambda: dist.all_reduce(1.0), TypeError),
        (lambda: dist.all_gather([x], x), ValueError),
        (lambda: dist.all_gather([x.double()] * n, x), ValueError),
        (lambda: dist.all_reduce(x, dist.ReduceOp.AVG), RuntimeError),
        (lambda: dist.new_group([7]), ValueError),
    ):
        with pytest.raises(error):
            wrong()
    dist.destroy_process_group()
    assert not dist.is_initialized()
"""


@needs_mpi
def test_every_collective_now_and_later(tmp_path):
    succeed(COLLECTIVES, tmp_path, 3)


# What two processes train on halves of a batch, one process trains on all of it.
TRAINING = """
    import copy, pickle
    import pytest
    import lantern.torch as torch
    import lantern.torch.distributed as dist
    from lantern.torch import nn
    from lantern.torch.nn.parallel import DistributedDataParallel as DDP

    from datetime import timedelta
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    r, n = dist.get_rank(), dist.get_world_size()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(3)
    data = torch.randn(6, 4 * n, 5)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(5, 7), nn.Linear(7, 2), nn.Linear(7, 2)
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x, which="b"):
            self.seen += 1
            h = torch.tanh(self.a(x))
            return self.b(h) if which == "b" else self.c(h) if which == "c" else (
                self.b(h) + self.c(h))

    def mine(batch):
        return batch[r::n]

    def close(p, q):
        assert torch.allclose(p, q, rtol=1e-13, atol=1e-13)

    for options in ({}, {"bucket_cap_mb": 1e-5}, {"gradient_as_bucket_view": True}):
        torch.manual_seed(r + 10)
        parallel = DDP(Model(), **options)
        single = copy.deepcopy(parallel.module)
        opts = [torch.optim.Adam(m.parameters(), lr=0.1) for m in (parallel, single)]
        for step, batch in enumerate(data):
            for opt in opts:
                opt.zero_grad()
            if step % 2:  # two micro-batches, of which only the second is averaged
                with parallel.no_sync():
                    parallel(mine(batch), "bc").pow(2).mean().backward()
                single(batch, "bc").pow(2).mean().backward()
            parallel(mine(batch), "bc").pow(2).mean().backward()
            single(batch, "bc").pow(2).mean().backward()
            for opt in opts:
                opt.step()
            for p, q in zip(parallel.parameters(), single.parameters()):
                close(p, q)

    # Parameters that some pass does not reach; here, there, or nowhere.
    unused = DDP(Model(), find_unused_parameters=True, bucket_cap_mb=1e-5)
    unused(mine(data[0]), "bc" [r % 2]).sum().backward()
    one = [p.grad.clone() for p in unused.parameters()]
    single = copy.deepcopy(unused.module)
    single.zero_grad()
    (sum(single(data[0][i::n], "bc"[i % 2]).sum() for i in range(n)) / n).backward()
    for p, q in zip(one, single.parameters()):
        close(p, q.grad)
    unused.zero_grad()
    unused(mine(data[0]), "b").sum().backward()
    assert unused.module.c.weight.grad is None
    strict = DDP(Model())
    strict(mine(data[0]), "b").sum().backward()
    with pytest.raises(RuntimeError, match="did not receive grad for rank"):
        strict(mine(data[0]), "b")

    # Buffers are the first process's; another copy works on.
    assert torch.equal(strict.module.seen, torch.ones(1))
    again = pickle.loads(pickle.dumps(parallel))
    close(again(mine(data[0])), parallel(mine(data[0])))
    with pytest.raises(RuntimeError, match="is not needed"):
        DDP(nn.ReLU())
    with pytest.raises(RuntimeError, match="expects same model"):
        DDP(nn.Linear(2, 2, bias=bool(r)))
    with pytest.raises(RuntimeError, match="appears not to match"):
        DDP(nn.Linear(2, 2 + r))

    # The layer that sees everybody's batch.
    x = data[0].clone().requires_grad_()
    whole, part = nn.BatchNorm1d(5), nn.BatchNorm1d(5)
    part = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(part))[0]
    y = data[0][r::n].clone().requires_grad_()
    (whole(x) ** 3).sum().backward()
    (part(y) ** 3).sum().backward()
    close(x.grad[r::n], y.grad)
    close(whole.running_var, part.running_var)
    dist.all_reduce(part.weight.grad)
    close(whole.weight.grad, part.weight.grad)

    # Uneven inputs.
    torch.manual_seed(1)
    uneven = DDP(nn.Linear(5, 1))
    zero = dist.optim.ZeroRedundancyOptimizer(
        uneven.parameters(), torch.optim.Adam, lr=0.1)
    from lantern.torch.distributed.algorithms.join import Join
    with Join([uneven, zero]):
        for batch in data[: 2 + r]:
            zero.zero_grad()
            uneven(mine(batch)).pow(2).mean().backward()
            zero.step()
    for p in uneven.parameters():
        q = p.detach().clone()
        dist.broadcast(q, 0)
        assert torch.equal(p, q)

    # An optimiser whose state is shared out, and what is saved of it.
    one, two = nn.Linear(5, 3), nn.Linear(5, 3)
    two.load_state_dict(one.state_dict())
    dist.broadcast(one.weight.data, 0), dist.broadcast(one.bias.data, 0)
    two.load_state_dict(one.state_dict())
    zero = dist.optim.ZeroRedundancyOptimizer(
        one.parameters(), torch.optim.Adam, lr=0.1)
    adam = torch.optim.Adam(two.parameters(), lr=0.1)
    for batch in data:
        for model, opt in ((one, zero), (two, adam)):
            opt.zero_grad()
            model(batch).pow(2).mean().backward()
            opt.step()
        assert torch.equal(one.weight, two.weight)
    zero.consolidate_state_dict(to=0)
    if r == 0:
        state, other = zero.state_dict(), adam.state_dict()
        for i in other["state"]:
            close(state["state"][i]["exp_avg"], other["state"][i]["exp_avg"])
    from lantern.torch.distributed import checkpoint
    checkpoint.save({"model": one.state_dict()}, checkpoint_id="saved")
    fresh = {"model": nn.Linear(5, 3).state_dict()}
    checkpoint.load(fresh, checkpoint_id="saved")
    assert torch.equal(fresh["model"]["weight"], one.weight)

    sampler = torch.utils.data.DistributedSampler(range(7))
    assert sampler.rank == r and sampler.num_replicas == n

    # Derivatives through collectives.
    x = torch.tensor([1.0, 2.0]).requires_grad_()
    y = dist.nn.functional.all_reduce(x * x * (r + 1))
    (y.sum() * (r + 1)).backward()
    assert x.grad.tolist() == [3 * 2 * (r + 1) * v for v in (1.0, 2.0)]
"""


@needs_mpi
def test_several_processes_train_as_one_does(tmp_path):
    succeed(TRAINING, tmp_path, 2)


class TestAlone:
    @pytest.fixture
    def model(self):
        dist.init_process_group("gloo")
        layers = [torch.nn.Linear(200, 200) for _ in range(2)]
        yield torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
        dist.destroy_process_group()

    @pytest.mark.parametrize("careful", [False, True])
    def test_gradients_are_those_without_buckets(self, model, careful):
        x = torch.randn(3, 200)
        for times in (1, 2):  # the second pass adds to what the first has left
            with torch.autograd.set_detect_anomaly(careful):
                model(x).pow(2).sum().backward()
            means = [p.grad.clone() for p in model.parameters()]
            model.zero_grad()
            for _ in range(times):
                model.module(x).pow(2).sum().backward()
            for mean, p in zip(means, model.parameters(), strict=True):
                assert torch.allclose(mean, p.grad, rtol=1e-5, atol=1e-5)
                p.grad = mean.clone()

    def test_a_product_that_waits_is_not_made_of_what_was_written_since(self, model):
        x = torch.randn(3, 200)
        hidden = model.module[0](x)
        z = model.module[1](hidden)
        model.reducer.prepare()
        z.register_hook(lambda z_bar: [None, x.mul_(2.0)][0])
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.pow(2).sum().backward()
        model(x).pow(2).sum().backward()  # a pass that was cut off spoils no other
        mean = model.module[0].weight.grad.clone()
        model.zero_grad()
        model.module(x).pow(2).sum().backward()
        assert torch.allclose(mean, model.module[0].weight.grad, rtol=1e-5)

    def test_a_pass_cut_off_is_no_business_of_another_model(self, model):
        z = model(torch.randn(3, 200))
        model.module[0].weight.register_hook(lambda z_bar: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            z.sum().backward()
        dist.destroy_process_group()
        w = torch.ones(2, requires_grad=True)
        w.sum().backward()
        assert w.grad.tolist() == [1, 1]
        dist.init_process_group("gloo")

    def test_one_process_is_a_group(self):
        dist.init_process_group("gloo")
        try:
            x = torch.ones(2)
            dist.all_reduce(x)
            work = dist.all_reduce(x, async_op=True)
            assert work.wait()
            assert x.tolist() == [1, 1]
            assert dist.get_backend() == "gloo"
            assert dist.get_world_size() == 1
        finally:
            dist.destroy_process_group()

    @pytest.mark.parametrize(
        ("call", "error", "words"),
        [
            (lambda: dist.init_process_group("glue"), ValueError, "Invalid backend"),
            (lambda: dist.all_reduce(torch.ones(1)), ValueError, "initialized"),
            (
                lambda: dist.init_process_group("gloo", "tcp://127.0.0.1:1"),
                ValueError,
                "rank parameter missing",
            ),
            (
                lambda: dist.init_process_group("gloo", timeout=3),
                TypeError,
                "timedelta",
            ),
        ],
    )
    def test_what_is_wrong_is_said(self, call, error, words):
        with pytest.raises(error, match=words):
            call()


@needs_mpi
def test_tensors_on_gpus_go_by_nccl(tmp_path):
    """On stand-ins for CuPy and NCCL: collectives, letters and DDP as on the host."""
    succeed(
        """
        import numpy as np
        import lantern.torch as torch
        import lantern.torch.distributed as dist
        from lantern.torch.nn.parallel import DistributedDataParallel
        from tests import backends

        dist.init_process_group("nccl")
        r, n = dist.get_rank(), dist.get_world_size()

        def both(program):
            there = program(lambda x: x.cuda())
            here = program(lambda x: x)
            for a, b in zip(there, here, strict=True):
                assert a.device.type == "cuda", a
                assert torch.allclose(a.cpu(), b, rtol=1e-14), (a, b)

        def collectives(place):
            x = place(torch.arange(4.0, dtype=torch.float64).reshape(2, 2).T + r)
            dist.all_reduce(x)
            yield x
            rows = [torch.zeros_like(x) for _ in range(n)]
            dist.all_gather(rows, x * (r + 1))
            yield from rows
            part = torch.zeros_like(x)
            dist.reduce_scatter(part, [x * i for i in range(n)])
            yield part
            dist.broadcast(part, 1)
            yield part
            dist.scatter(part, [x, 2 * x] if r == 0 else None, src=0)
            yield part
            swapped = [torch.zeros_like(x) for _ in range(n)]
            dist.all_to_all(swapped, [x + r + i for i in range(n)])
            yield from swapped
            if r == 0:
                dist.send(x, 1)
                dist.recv(part, 1)
            else:
                dist.recv(part, 0)
                dist.send(part * 3, 0)
            yield part

        def training(place):
            torch.manual_seed(0)
            net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
            net = DistributedDataParallel(place(net.double()))
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for i in range(3):
                optimizer.zero_grad()
                rows = np.random.default_rng(2 * i + r).normal(size=(5, 3))
                loss = net(place(torch.tensor(rows))).square().mean()
                loss.backward()
                optimizer.step()
            yield from (p.detach() for p in net.parameters())

        with backends.as_cuda(backends.StandIn()):
            both(collectives)
            both(training)
        """,
        tmp_path,
        2,
    )
