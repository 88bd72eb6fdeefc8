"""Data sets, samplers and loaders, against PyTorch's where nothing is random."""

import collections
import itertools
import threading

import numpy as np
import pytest

import lantern.torch as ours
from tests.torch.compared import assert_same_scenario, plain

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")
mine = ours.utils.data
BOTH = pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])

Pair = collections.namedtuple("Pair", "left right")
EXPRESSIONS = """
list(d.DataLoader(s))
list(d.DataLoader(s, batch_size=3))
list(d.DataLoader(s, 3, drop_last=True))
list(d.DataLoader(s, batch_size=None))
list(d.DataLoader(s, batch_sampler=[[0, 2], [1]]))
list(d.DataLoader(s, sampler=[3, 1], batch_size=2))
list(d.DataLoader(s, 2, collate_fn=lambda rows: len(rows)))
list(d.DataLoader([1.5, 2.5, 3.5], 2))
list(d.DataLoader(['a', 'b', 'c'], 2))
list(d.DataLoader([{'a': 1, 'b': [1.0, 2]}, {'a': 3, 'b': [4.0, 5]}], 2))
list(d.DataLoader([Pair(1, 2.0), Pair(3, 4.0)], 2))
list(d.DataLoader([np.ones(2), np.zeros(2)], 2))
len(d.DataLoader(s, 3)), len(d.DataLoader(s, 3, drop_last=True)), len(s)
d.ConcatDataset([s, s])[-1], len(s + s), (s + s)[7]
d.Subset(s, [2, 0])[1]
d.StackDataset(a=s, b=s)[1]
[len(p) for p in d.random_split(s, [3, 4])]
[len(p) for p in d.random_split(s, [0.5, 0.3, 0.2])]
sorted(i for part in d.random_split(range(9), [4, 5]) for i in part)
sorted(d.RandomSampler(s)), sorted(d.SubsetRandomSampler([4, 1]))
len(list(d.RandomSampler(s, num_samples=11))), len(d.RandomSampler(s, True, 4))
list(d.BatchSampler(range(5), 2, False)), list(d.SequentialSampler(s))
set(d.WeightedRandomSampler([0.0, 1.0, 0.0], 5))
d.random_split(s, [1, 2])
d.TensorDataset(torch.ones(2), torch.ones(3))
d.DataLoader(s, sampler=[1], shuffle=True)
d.DataLoader(s, batch_sampler=[[1]], batch_size=3)
d.DataLoader(s, batch_size=0)
d.DataLoader(s, num_workers=-1)
list(d.DataLoader([torch.ones(2), torch.ones(3)], 2))
list(d.DataLoader([[1, 2], [3]], 2))
"""


def outcome(torch, source):
    d = torch.utils.data
    s = d.TensorDataset(torch.arange(7), torch.arange(14.0).reshape(7, 2))
    try:
        return plain(
            eval(source, {"torch": torch, "d": d, "s": s, "np": np, "Pair": Pair})
        )
    except Exception as error:
        return type(error)


def comparable(z):
    if isinstance(z, tuple) and len(z) == 3 and isinstance(z[2], np.ndarray):
        return z[0], z[1], z[2].tolist()
    if isinstance(z, list):
        return [comparable(part) for part in z]
    return {k: comparable(v) for k, v in z.items()} if isinstance(z, dict) else z


@pytest.mark.parametrize("source", EXPRESSIONS.strip().split("\n"))
def test_an_expression_means_the_same(source):
    mine, other = outcome(ours, source), outcome(theirs, source)
    if isinstance(other, type):
        assert issubclass(mine, other)
    else:
        assert comparable(mine) == comparable(other)


def order(loader):
    return [x.tolist() for (x,) in loader]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_seed_gives_one_order_with_any_number_of_workers(workers):
    data = ours.utils.data
    numbers = data.TensorDataset(ours.arange(50))

    def epochs(workers):
        generator = ours.Generator()
        generator.manual_seed(3)
        loader = data.DataLoader(
            numbers, 4, shuffle=True, generator=generator, num_workers=workers
        )
        return order(loader), order(loader)

    first, second = epochs(workers)
    assert (first, second) == epochs(0)
    assert first != second
    assert sorted(i for batch in first for i in batch) == list(range(50))


def test_the_programs_seed_gives_one_order():
    data = ours.utils.data
    loader = data.DataLoader(data.TensorDataset(ours.arange(20)), 4, shuffle=True)
    ours.manual_seed(5)
    first = order(loader)
    ours.manual_seed(5)
    assert order(loader) == first


@BOTH
def test_rows_without_numbers(torch):
    class Count(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    loader = torch.utils.data.DataLoader(Count(), batch_size=2)
    assert [x.tolist() for x in loader] == [[0, 1], [2, 3], [4]]


def test_what_a_worker_raises_reaches_the_loop():
    class Broken(ours.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            if i == 5:
                raise KeyError("five")
            return i

    loader = ours.utils.data.DataLoader(Broken(), 2, num_workers=2)
    with pytest.raises(KeyError, match="five"):
        list(loader)


def test_a_loop_that_is_left_lets_its_workers_go():
    before = set(threading.enumerate())
    loader = ours.utils.data.DataLoader(list(range(100)), 2, num_workers=3)
    batches = iter(loader)
    next(batches)
    own = [
        thread
        for thread in set(threading.enumerate()) - before
        if thread.name.startswith("DataLoader")
    ]
    assert own
    del batches
    for thread in own:
        thread.join(5)
    assert not any(thread.is_alive() for thread in own)


def test_tqdm_counts_batches(capsys):
    tqdm = pytest.importorskip("tqdm", reason="a progress bar around a loader")
    loader = ours.utils.data.DataLoader(list(range(10)), 3)
    bar = tqdm.tqdm(loader)
    assert bar.total == 4
    assert len(list(bar)) == 4


def test_workers_know_who_they_are():
    seen = set()

    class Asking(ours.utils.data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            info = ours.utils.data.get_worker_info()
            seen.add((info.id < info.num_workers, info.num_workers))
            return i

    started = []
    loader = ours.utils.data.DataLoader(
        Asking(), num_workers=2, worker_init_fn=started.append
    )
    assert len(list(loader)) == 6
    assert seen == {(True, 2)}
    assert set(started) <= {0, 1}
    assert ours.utils.data.get_worker_info() is None


def test_many_draws_take_little_memory():
    sampler = mine.RandomSampler(range(5), replacement=True, num_samples=10**10)
    assert all(0 <= i < 5 for i in itertools.islice(sampler, 100))
    sampler = mine.WeightedRandomSampler(ours.ones(20_000), 20_000)
    assert {0 <= i < 20_000 for i in sampler} == {True}


def test_every_process_gets_its_share():
    parts = [mine.DistributedSampler(range(7), 3, rank) for rank in range(3)]
    assert [len(list(part)) for part in parts] == [3, 3, 3]
    assert {i for part in parts for i in part} == set(range(7))
    before = list(parts[0])
    parts[0].set_epoch(1)
    assert list(parts[0]) != before
    dropped = mine.DistributedSampler(range(7), 3, 0, shuffle=False, drop_last=True)
    assert list(dropped) == [0, 3]
    with pytest.raises(ValueError, match="has not been initialized"):
        mine.DistributedSampler(range(7))


class Named(dict):
    label = ""


class Row(list):
    label = ""


class Fixed(collections.abc.Sequence):
    """A sequence that cannot be made of its parts."""

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return range(2)[i]


def labelled(cls, parts):
    whole = cls(parts)
    whole.label = "first"
    return whole


@BOTH
def test_joined_examples_are_of_the_first_ones_class(torch):
    collate = torch.utils.data._utils.collate
    rows = [labelled(Row, [1, 2]), Row([3, 4])]
    named = [labelled(Named, {"a": 1}), Named({"a": 2})]
    for examples in (rows, named):
        joined = collate.default_collate(examples)
        assert type(joined) is type(examples[0])
        assert joined.label == "first"
    assert [x.tolist() for x in collate.default_collate(rows)] == [[1, 3], [2, 4]]
    assert collate.default_collate(named)["a"].tolist() == [1, 2]
    for other in (range(2), Fixed(), (0, 1)):
        joined = collate.default_collate([other, other])
        assert type(joined) is list
        assert [x.tolist() for x in joined] == [[0, 0], [1, 1]]


@BOTH
def test_converted_structures_keep_their_classes(torch):
    convert = torch.utils.data.default_convert
    pair = convert(Pair(np.ones(2), "a"))
    assert type(pair) is Pair
    assert isinstance(pair.left, torch.Tensor)
    row = convert(labelled(Row, [np.float64(1), "b"]))
    assert (type(row), row.label) == (Row, "first")
    assert isinstance(row[0], torch.Tensor)
    assert convert(b"ab") == b"ab"
    assert type(convert((1, 2))) is list


def after_an_error(data):
    """How many batches fail, and which come all the same."""

    class Even(data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            if i % 4 == 3:
                raise KeyError(i)
            return i

    def run(workers):
        found, batches = [], iter(data.DataLoader(Even(), 2, num_workers=workers))
        while True:
            try:
                found.append(next(batches).tolist())
            except StopIteration:
                return found
            except KeyError:
                found.append("failed")

    return run


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_in_a_batch_is_not_the_end(workers):
    wanted = [[0, 1], "failed", [4, 5], "failed"]
    assert after_an_error(mine)(workers) == wanted


def test_workers_take_turns_and_their_first_error_is_told():
    class Which(mine.Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, i):
            return mine.get_worker_info().id

    loader = mine.DataLoader(Which(), 2, num_workers=3)
    for _ in range(2):
        assert [x[0].item() for x in loader] == [0, 1, 2, 0, 1, 2]

    def fail(number):
        raise ValueError(f"not {number}")

    loader = mine.DataLoader(Which(), num_workers=2, worker_init_fn=fail)
    with pytest.raises(ValueError, match="not 0"):
        next(iter(loader))


REFUSED = {
    "rows in a concatenation": lambda data: data.ConcatDataset([Countdown(data)()]),
    "numbers in a chain": lambda data: list(data.ChainDataset([[1, 2]])),
    "two kinds of stacks": lambda data: data.StackDataset([1], a=[2]),
    "an empty stack": lambda data: data.StackDataset(),
    "a number for a bool": lambda data: data.RandomSampler([1], replacement=0),
    "a context without workers": lambda data: data.DataLoader(
        [1], multiprocessing_context="spawn"
    ),
    "an unknown context": lambda data: data.DataLoader(
        [1], num_workers=1, multiprocessing_context="bad"
    ),
    "another data set": lambda data: setattr(data.DataLoader([1]), "dataset", [2]),
    "fewer examples": lambda data: data.StackDataset(Fewer(data)()).__getitems__([0]),
}


def Countdown(data):
    class Count(data.IterableDataset):
        def __iter__(self):
            return iter([2, 1])

    return Count


def Fewer(data):
    class Fewer(data.Dataset):
        def __len__(self):
            return 1

        def __getitems__(self, indices):
            return []

    return Fewer


@pytest.mark.parametrize("name", REFUSED)
def test_what_pytorch_refuses(name):
    assert_same_scenario(lambda torch: REFUSED[name](torch.utils.data))


class Stretch(mine.IterableDataset):
    """Whole numbers, which each worker goes through."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def __iter__(self):
        return iter(range(self.start, self.end))


class Shared(Stretch):
    """Whole numbers, of which each worker takes its share."""

    def __iter__(self):
        info = mine.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(self.start + first, self.end, step))


def share_of(dataset, number, workers):
    per_worker = -(-(dataset.end - dataset.start) // workers)
    dataset.start += number * per_worker
    dataset.end = min(dataset.start + per_worker, dataset.end)


def share(number):
    info = mine.get_worker_info()
    share_of(info.dataset, number, info.num_workers)


@pytest.mark.parametrize(
    ("dataset", "options", "wanted"),
    [
        (Stretch(3, 7), {}, [[3], [3], [4], [4], [5], [5], [6], [6]]),
        (Stretch(3, 7), {"batch_size": 3}, [[3, 4, 5], [3, 4, 5], [6], [6]]),
        (Stretch(3, 7), {"batch_size": 3, "drop_last": True}, [[3, 4, 5], [3, 4, 5]]),
        (Stretch(3, 5), {"batch_size": None}, [3, 3, 4, 4]),
        (Stretch(3, 7), {"worker_init_fn": share}, [[3], [5], [4], [6]]),
        (
            Stretch(3, 8),
            {"worker_init_fn": share, "num_workers": 4},
            [[3], [5], [7], [4], [6]],
        ),
        (Shared(3, 8), {}, [[3], [4], [5], [6], [7]]),
        (Shared(3, 8), {"batch_size": 2}, [[3, 5], [4, 6], [7]]),
        (Shared(3, 5), {"num_workers": 5}, [[3], [4]]),
        (Stretch(3, 3), {}, []),
        (Stretch(3, 5), {"num_workers": 0, "batch_size": 2}, [[3, 4]]),
    ],
)
def test_each_worker_goes_through_a_row_of_its_own(dataset, options, wanted):
    loader = mine.DataLoader(dataset, **{"num_workers": 2, **options})
    for _ in range(2):  # and leaves the data set as it was
        assert [x.tolist() if hasattr(x, "tolist") else x for x in loader] == wanted


@pytest.mark.parametrize("way", ["by its method", "by its name", "by its worker"])
def test_what_a_worker_does_to_the_data_set_stays_its_own(way):
    class Own(mine.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            return self.worker, i

        def begin(self, number):
            self.worker = number

    dataset = Own()
    begin = {
        "by its method": dataset.begin,
        "by its name": lambda number: setattr(dataset, "worker", number),
        "by its worker": lambda number: mine.get_worker_info().dataset.begin(number),
    }[way]
    loader = mine.DataLoader(dataset, 2, num_workers=3, worker_init_fn=begin)
    found = [(worker.tolist(), i.tolist()) for worker, i in loader]
    assert found == [
        ([0, 0], [0, 1]), ([1, 1], [2, 3]), ([2, 2], [4, 5]), ([0, 0], [6, 7])
    ]  # fmt: skip
    assert not hasattr(dataset, "worker")


def test_an_error_in_a_row_ends_that_workers_alone():
    class Broken(Stretch):
        def __iter__(self):
            number = mine.get_worker_info().id
            yield number
            if number == 0:
                raise ValueError("the end")
            yield 10

    batches = iter(mine.DataLoader(Broken(0, 0), num_workers=2))
    assert [next(batches).tolist() for _ in range(2)] == [[0], [1]]
    with pytest.raises(ValueError, match="the end"):
        next(batches)
    assert [x.tolist() for x in batches] == [[10]]


def test_a_batch_is_pinned_in_its_parts():
    from lantern.torch.utils.data._utils.pin_memory import pin_memory

    class Own:
        def pin_memory(self):
            return "pinned"

    x = ours.ones(2)
    a, b, c = pin_memory((Own(), {"k": [Own(), "text"]}, x))
    assert (a, b) == ("pinned", {"k": ["pinned", "text"]})
    assert c.tolist() == [1.0, 1.0]
