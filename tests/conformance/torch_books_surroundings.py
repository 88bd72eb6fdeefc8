"""What books' programs find around them: small batches, made-up data, like draws."""

import contextlib
import importlib
import io
import itertools
import math
import random
import sys
import tarfile
import types
import unittest.mock
import urllib.request
import zipfile
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

WORDS = (
    "the a time old man said to of and in machine was his with that one is it".split()
)
MOST = 1 << 18  # numbers that are drawn at once
LABELS = "entailment contradiction neutral".split()
CLASSES = {"FashionMNIST": 28, "MNIST": 28, "CIFAR10": 32}
REVIEWS = [f"{part}/{side}" for part in ("train", "test") for side in ("pos", "neg")]


def written(n, form="{}"):
    """Lines of words, the same ones each time."""
    draws = np.random.RandomState(0)
    return "".join(
        form.format(" ".join(draws.choice(WORDS, draws.randint(4, 12))), LABELS[i % 3])
        + "\n"
        for i in range(n)
    )


def translated():
    """Pairs of sentences."""
    return "".join(f"{s}.\t{s.upper()} !\n" for s in written(700).splitlines())


def inferred(n):
    """Pairs of sentences and what is inferred, as SNLI has them."""
    return "label\n" + written(n, "{1}\t( {0} )\t( {0} )\t")


def vectors():
    """Vectors of words, as GloVe has them."""
    rows = np.random.RandomState(0).randn(len(WORDS), 50)
    pairs = zip(WORDS, rows, strict=True)
    return "".join(
        f"{w} " + " ".join(f"{v:.4f}" for v in row) + "\n" for w, row in pairs
    )


def table(rows, columns):
    """Rows of numbers."""
    draws = np.random.RandomState(0)
    lines = ("\t".join(f"{v:.4f}" for v in draws.rand(columns)) for _ in range(rows))
    return "\n".join(lines) + "\n"


# What lies in archives, by their names.
ARCHIVES = {
    "fra-eng.zip": {"fra-eng/fra.txt": translated},
    "ptb.zip": {f"ptb/ptb.{p}.txt": lambda: written(600) for p in ("train", "valid")},
    "wikitext-2-v1.zip": {
        f"wikitext-2/wiki.{p}.tokens": lambda: written(600, " {0} . {0} ")
        for p in ("train", "valid")
    },
    "aclImdb_v1.tar.gz": {
        f"aclImdb/{side}/{i}_1.txt": lambda: written(3)
        for side in REVIEWS
        for i in range(40)
    },
    "snli_1.0.zip": {
        f"snli_1.0/snli_1.0_{p}.txt": lambda: inferred(300) for p in ("train", "test")
    },
    **{
        f"glove.{kind}.zip": {f"glove.{kind}/vec.txt": vectors}
        for kind in ("6B.50d", "6B.100d", "42B.300d")
    },
}


def content(url):
    """What comes in place of a file that is downloaded."""
    name = url.partition("?")[0].rpartition("/")[2]
    if name.endswith((".zip", ".gz")):
        return archive(name, ARCHIVES[name])
    if name.endswith(".dat"):
        return table(1503, 6).encode()
    if name.endswith(".txt"):
        return written(3000).encode()
    raise OSError(f"nothing is made up for {name}")


def archive(name, parts):
    """Files in one."""
    packed = io.BytesIO()
    if name.endswith(".zip"):
        with zipfile.ZipFile(packed, "w") as z:
            for path, made in parts.items():
                z.writestr(path, made())
        return packed.getvalue()
    with tarfile.open(fileobj=packed, mode="w:gz") as t:
        for path, made in parts.items():
            data = made().encode()
            info = tarfile.TarInfo(path)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return packed.getvalue()


class Answer(io.BytesIO):
    """What a server answers."""

    status_code, ok = 200, True

    def __init__(self, url, *args, **options):
        super().__init__(content(url if isinstance(url, str) else url.full_url))
        self.content = self.getvalue()
        self.text = self.content.decode(errors="replace")
        self.headers = {"content-length": str(len(self.content))}

    def raise_for_status(self):
        """Nothing went wrong."""

    def iter_content(self, size):
        """All at once."""
        yield self.content


def retrieve(url, path, *args, **options):
    """Write what is downloaded into a file."""
    with open(path, "wb") as file:
        file.write(content(url))
    return path, None


class MadeUp:
    """Images in place of a data set, one in ten for each class."""

    side, examples = 28, 320

    def __init__(self, root=None, train=True, transform=None, **options):
        n, side = self.examples, self.side
        shape = (n, side, side) if side == 28 else (n, side, side, 3)
        draws = np.random.RandomState(int(train))
        self.transform, self.train = transform, train
        self.images = draws.randint(0, 256, shape).astype(np.uint8)
        self.labels = [i % 10 for i in range(n)]
        self.classes = [str(i) for i in range(10)]
        import torch

        self.targets = torch.tensor(self.labels)
        self.data = torch.tensor(self.images)

    def __len__(self):
        return self.examples

    def __getitem__(self, i):
        from PIL import Image

        if not 0 <= i < self.examples:
            raise IndexError(i)
        image = Image.fromarray(self.images[i])
        return self.transform(image) if self.transform else image, self.labels[i]


class Encoding:
    """Words as numbers, in place of a vocabulary that is downloaded."""

    n_vocab, eot_token, known = 50257, 50256, {}

    def encode(self, text, **options):
        """A number for each word."""
        parts = text.replace(" ", "\0 ").split("\0")
        found = [zlib.crc32(w.encode()) % 50000 for w in parts if w]
        self.known.update(zip(found, filter(None, parts), strict=True))
        return found

    def decode(self, numbers):
        """The words again."""
        return "".join(self.known.get(int(i), "?") for i in numbers)


def vision():
    """Let torchvision be imported without its operators, and its data be made up."""
    try:
        sets = importlib.import_module("torchvision.datasets")
    except ImportError:
        return
    for name, side in CLASSES.items():
        setattr(sets, name, type(name, (MadeUp,), {"side": side}))


def without_operators(torch):
    """torchvision's operators by name, where they are of another PyTorch."""
    if "lantern" not in torch.__version__ and torch.version.cuda is None:
        library = torch.library.Library("torchvision", "DEF")
        names = "nms qnms roi_align roi_pool ps_roi_align ps_roi_pool deform_conv2d"
        for name in names.split():
            library.define(f"{name}(Tensor x) -> Tensor")
        return library
    return None


class Draws:
    """Numbers for both libraries: of each kind and shape, the first, the second, ..."""

    def __init__(self, torch):
        self.torch, self.count = torch, Counter()

    def stream(self, kind, shape):
        """A stream of its own for each time."""
        key = kind, tuple(shape)
        self.count[key] += 1
        seed = zlib.crc32(repr((key, self.count[key])).encode())
        return np.random.RandomState(seed)

    def of_layer(self, name, layer):
        """A stream for a layer's weight: the same one if it is set once more."""
        if "_drawn" not in vars(layer):
            self.count["layers"] += 1
            vars(layer)["_drawn"] = self.count["layers"]
        return np.random.RandomState(zlib.crc32(f"{name} {layer._drawn}".encode()))

    def made(self, kind, shape, low=0, high=1, *names):
        """An array; what is large repeats itself, which takes less time."""
        draws = self.of_layer(*names) if names else self.stream(kind, shape)
        shape = tuple(map(int, shape))
        few = shape if math.prod(shape) < MOST else (MOST + 1,)
        if kind == "randint":
            return np.resize(draws.randint(low, high, few), shape)
        return np.resize(getattr(draws, kind)(*few), shape)

    def order(self, sampler):
        """What a sampler of random examples gives."""
        n = len(sampler.data_source)
        if sampler.replacement:
            k = min(sampler.num_samples, 10000)
            return iter(self.made("randint", (k,), 0, n).tolist())
        return iter(self.stream("randperm", (n,)).permutation(n).tolist())

    def split(self, data, lengths, generator=None):
        """Parts of a data set: the first examples, the next, ..."""
        n = len(data)
        whole = all(isinstance(k, int) for k in lengths)
        ends = np.cumsum([0, *(k if whole else int(k * n) for k in lengths)])
        part = self.torch.utils.data.Subset
        return [part(data, range(a, b)) for a, b in itertools.pairwise(ends)]

    def fill(self, x, kind, scale=1.0, shift=0.0, *names):
        """Fill a tensor."""
        drawn = self.made(kind, x.shape, 0, 1, *names)
        values = self.torch.tensor(drawn * scale + shift)
        with self.torch.no_grad():
            return x.copy_(values.to(x.dtype))


def shape_of(size):
    """A shape, given as one argument or as several."""
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size


def functions(draws):
    """PyTorch's functions that draw."""
    torch = draws.torch

    def made(kind):
        def make(*size, dtype=None, requires_grad=False, **options):
            shape = shape_of(size or (options["size"],))
            x = torch.tensor(draws.made(kind, shape))
            x = x.to(dtype or torch.get_default_dtype())
            return x.requires_grad_(requires_grad)

        def like(x, dtype=None, **options):
            return make(*x.shape, dtype=dtype or x.dtype)

        return make, like

    def randint(*args, size=None, low=None, high=None, dtype=torch.int64, **options):
        bounds = [v for v in (low, high, *args) if isinstance(v, int)]
        shape = size if size is not None else args[-1]
        low, high = bounds if len(bounds) == 2 else (0, *bounds)
        return torch.tensor(draws.made("randint", shape, low, high)).to(dtype)

    def randperm(n, **options):
        return torch.tensor(draws.stream("randperm", (n,)).permutation(n))

    def normal(mean, std=1.0, size=None, **options):
        shape = size if size is not None else torch.as_tensor(mean + 0 * std).shape
        z = torch.tensor(draws.made("randn", shape)).to(torch.get_default_dtype())
        return (z * std + mean).requires_grad_(options.get("requires_grad", False))

    def bernoulli(p, **options):
        return (torch.tensor(draws.made("rand", p.shape)) < p.double()).to(p.dtype)

    def multinomial(input, num_samples, replacement=False, **options):
        p, n = input, num_samples
        q = p.detach().double().log() - torch.tensor(
            np.log(-np.log(draws.made("rand", (*p.shape[:-1], n, p.shape[-1]))))
        ).movedim(-2, 0)
        if replacement:
            return q.argmax(-1).movedim(0, -1)
        return q[0].topk(n)[1]

    (rand, rand_like), (randn, randn_like) = made("rand"), made("randn")
    found = locals()
    names = (
        "rand rand_like randn randn_like randint randperm normal bernoulli multinomial"
    )
    return {name: found[name] for name in names.split()}


def methods(draws):
    """Tensors' methods that draw."""

    def uniform_(x, a=0.0, b=1.0, **options):
        return draws.fill(x, "rand", b - a, a)

    def normal_(x, mean=0.0, std=1.0, **options):
        return draws.fill(x, "randn", std, mean)

    def random_(x, *args, **options):
        low, high = (0, *args)[-2:] if args else (0, 1 << 20)
        shape = tuple(x.shape)
        return x.copy_(draws.torch.tensor(draws.made("randint", shape, low, high)))

    def exponential_(x, rate=1.0, **options):
        z = -np.log1p(-draws.made("rand", x.shape)) / rate
        return x.copy_(draws.torch.tensor(z))

    def bernoulli_(x, p=0.5, **options):
        return x.copy_(draws.torch.tensor(draws.made("rand", x.shape) < float(p)))

    found = locals()
    names = "uniform_ normal_ random_ exponential_ bernoulli_".split()
    return {name: found[name] for name in names}


def scaled(draws, x, *names):
    """Fill a weight as if it were drawn: constants stay."""
    shapeless = type(x).__name__.startswith("Uninitialized")
    if shapeless or x.numel() < 2 or float(x.detach().std()) == 0:
        return x
    fan = math.prod(x.shape[1:]) or 1
    return draws.fill(x, "rand", 2 / math.sqrt(fan), -1 / math.sqrt(fan), *names)


def without_dropout(cls):
    """Let layers that drop something by themselves drop nothing."""
    begin = cls.__init__

    def start(self, *args, **options):
        begin(self, *args, **options)
        self.dropout = 0.0

    cls.__init__ = start


def same_layers(draws):
    """Let layers begin with the same weights, and let nothing be dropped."""
    nn = draws.torch.nn

    def filling(start):
        def reset(self, *args, **options):
            before = draws.count.copy()
            start(self, *args, **options)
            before["layers"] = draws.count["layers"]
            draws.count = before
            for name, p in self.named_parameters(recurse=False):
                scaled(draws, p, name, self)

        return reset

    for cls in {c for c in vars(nn).values() if isinstance(c, type)}:
        for name in ("reset_parameters", "_reset_parameters"):
            if name in vars(cls):
                setattr(cls, name, filling(vars(cls)[name]))
        if "Dropout" in cls.__name__:
            cls.forward = lambda self, x: x
    # Where PyTorch's modules have taken functions at their start.
    places = nn.init, nn.modules.activation, nn.modules.transformer
    for name in ("xavier", "kaiming"):
        for law, place in itertools.product(("uniform_", "normal_"), places):
            setattr(
                place, f"{name}_{law}", lambda x, *a, **o: scaled(draws, x.uniform_())
            )
    nn.init.trunc_normal_ = lambda x, mean=0.0, std=1.0, *a, **o: x.uniform_(-std, std)
    for name in ("dropout", "dropout1d", "dropout2d", "alpha_dropout"):
        setattr(nn.functional, name, lambda input, *a, **o: input)
    without_dropout(nn.RNNBase)
    without_dropout(nn.MultiheadAttention)
    nn.init.normal_ = lambda x, mean=0.0, std=1.0, **o: x.normal_(mean, std)
    nn.init.uniform_ = lambda x, a=0.0, b=1.0, **o: x.uniform_(a, b)


def choice(law, sample_shape=()):
    """What a distribution over classes draws."""
    import torch

    n = math.prod(sample_shape)
    drawn = torch.multinomial(law.probs.reshape(-1, law.probs.shape[-1]), n, True)
    return drawn.T.reshape(tuple(law._extended_shape(torch.Size(sample_shape))))


def same(torch):
    """Let both libraries draw the same."""
    draws = Draws(torch)
    for name, f in functions(draws).items():
        setattr(torch, name, f)
    for name, f in methods(draws).items():
        setattr(torch.Tensor, name, f)
    torch.Tensor.multinomial, torch.Tensor.bernoulli = (
        torch.multinomial,
        torch.bernoulli,
    )
    torch.distributions.Categorical.sample = choice
    torch.utils.data.RandomSampler.__iter__ = lambda sampler: draws.order(sampler)
    torch.utils.data.random_split = draws.split
    attend = torch.nn.functional.scaled_dot_product_attention

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, *args, **options):
        return attend(query, key, value, attn_mask, 0.0, *args, **options)

    torch.nn.functional.scaled_dot_product_attention = attention
    same_layers(draws)


def small_batches(torch, most):
    """Let loaders give few examples at once, in this process."""
    begin = torch.utils.data.DataLoader.__init__

    def start(self, dataset, batch_size=1, shuffle=None, *args, **options):
        options.pop("num_workers", None)
        options.pop("prefetch_factor", None), options.pop("persistent_workers", None)
        if batch_size is not None and "batch_sampler" not in options:
            options["batch_size"] = min(batch_size, most)
        begin(self, dataset, shuffle=shuffle, **options)

    torch.utils.data.DataLoader.__init__ = start


def no_pictures():
    """Let what draws while it trains draw nothing."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.show = plt.pause = lambda *args, **options: None
    try:
        from d2l import torch as d2l
    except ImportError:
        return
    d2l.ProgressBoard.draw = lambda *args, **options: None
    d2l.Animator.add = d2l.plot = d2l.show_images = lambda *args, **options: None


def prepare():
    """Import what all programs need, which takes longer than most of them."""
    import torch

    surround.kept = without_operators(torch)
    names = "torchvision matplotlib.pyplot pandas requests IPython torch._dynamo"
    for name in names.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def in_double(torch):
    """Let what is said to be of single precision be of double precision."""
    torch.set_default_dtype(torch.float64)
    torch.float = torch.float32 = torch.float64
    torch.FloatTensor, torch.Tensor.float = torch.DoubleTensor, torch.Tensor.double


def surround(alike, batch, double=False):
    """Make the surroundings; gives the library.

    Args:
        alike: whether both libraries draw the same.
        batch: examples in a batch, at most.
        double: whether to compute in double precision.
    """
    import torch

    torch.set_num_threads(1)
    np.random.seed(0), random.seed(0)
    vision()
    tokens = types.ModuleType("tiktoken")
    tokens.get_encoding = tokens.encoding_for_model = lambda name: Encoding()
    sys.modules["tiktoken"] = tokens
    urllib.request.urlretrieve, urllib.request.urlopen = retrieve, Answer
    with contextlib.suppress(ImportError):
        importlib.import_module("requests").get = Answer
    board = types.ModuleType("torch.utils.tensorboard")
    board.SummaryWriter = unittest.mock.MagicMock
    sys.modules[board.__name__] = torch.utils.tensorboard = board
    Path("input.txt").write_text(written(3000) + "O God, O God!\n")
    small_batches(torch, batch)
    if double:
        in_double(torch)
    if alike:
        same(torch)
    else:
        torch.manual_seed(0)
    no_pictures()
    return torch
