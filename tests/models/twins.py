"""Each model under both libraries: PyTorch's is the same source with another import."""

import types
from pathlib import Path

import numpy as np

import lantern
import lantern.torch as ours

FOLDER = Path(lantern.__file__).parent / "models"
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def twin(file, name):
    """A name of a file of models, with PyTorch in the place of ``lantern.torch``."""
    source = (FOLDER / f"{file}.py").read_text().replace("lantern.torch", "torch")
    module = types.ModuleType(f"twin.{file}")
    exec(compile(source, f"twin of {file}.py", "exec"), vars(module))
    return getattr(module, name)


def mine(file, name):
    """A name of a file of models."""
    return getattr(__import__(f"lantern.models.{file}", fromlist=[name]), name)


def images(shape, classes):
    """What makes batches of images and labels."""

    def batch(rng):
        return rng.normal(size=shape), rng.integers(0, classes, shape[0])

    return batch


def texts(count, length, vocabulary):
    """What makes batches of tokens, and the tokens that follow them."""

    def batch(rng):
        rows = rng.integers(1, vocabulary, (count, length + 1))
        return rows[:, :-1], rows[:, 1:]

    return batch


def labelled(count, length, vocabulary, classes):
    """What makes batches of texts of several lengths, and their classes."""

    def batch(rng):
        rows = rng.integers(1, vocabulary, (count, length))
        for i in range(1, count):
            rows[i, length - i :] = 0
        return rows, rng.integers(0, classes, count)

    return batch


def sounds(count, bands, frames, classes):
    """What makes batches of spectrograms and letters, whose lengths differ."""

    def batch(rng):
        x = rng.normal(size=(count, 1, bands, frames))
        letters = rng.integers(1, classes, (count, frames // 6))
        return x, letters

    return batch


def classified(torch, model, x, y):
    """The cross entropy of classes."""
    return torch.nn.functional.cross_entropy(model(x), y)


def likelihood(torch, model, x, y):
    """The loss of a model that gives log-probabilities."""
    return torch.nn.functional.nll_loss(model(x), y)


def expected(torch, model, x, y):
    """The cross entropy of next tokens."""
    scores = model(x)
    scores = scores[0] if isinstance(scores, tuple) else scores
    return torch.nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())


def heard(torch, model, x, y):
    """CTC, of utterances that end at different times."""
    scores = model(x)
    count, letters = y.shape
    heard = torch.tensor([scores.shape[0] - i for i in range(count)])
    said = torch.tensor([letters - 2 * i for i in range(count)])
    return torch.nn.functional.ctc_loss(scores, y, heard, said)


# Of each model: its file, its name, options for a small one, batches, loss, rate.
SMALL_GPT = {"vocabulary": 20, "context": 12, "width": 16, "heads": 2, "layers": 2}
SMALL_LLAMA = {
    "vocabulary": 20, "width": 16, "inner": 24, "heads": 4, "key_heads": 2, "layers": 2
}  # fmt: skip
SMALL_SPEECH = {"classes": 7, "bands": 41, "hidden": 12, "layers": 3, "channels": 4}
SMALL_TEXT = {
    "vocabulary": 20, "classes": 3, "width": 16, "heads": 2, "layers": 2, "dropout": 0.0
}  # fmt: skip
CIFAR = {"num_classes": 10, "stem": "cifar"}
MODELS = {
    "MNISTNet": ("mnist", "MNISTNet", {"dropout": 0.0},
                 images((4, 1, 28, 28), 10), likelihood, 0.01),
    "CharacterRNN, RNN": ("characters", "CharacterRNN", {"vocabulary": 20},
                          texts(3, 12, 20), expected, 0.1),
    "CharacterRNN, LSTM": ("characters", "CharacterRNN",
                           {"vocabulary": 20, "cell": "lstm", "layers": 2},
                           texts(3, 12, 20), expected, 0.1),
    "DeepSpeech2, RNN": ("deepspeech", "DeepSpeech2", SMALL_SPEECH,
                         sounds(3, 41, 60, 7), heard, 3e-4),
    "DeepSpeech2, LSTM": ("deepspeech", "DeepSpeech2", SMALL_SPEECH | {"cell": "lstm"},
                          sounds(3, 41, 60, 7), heard, 3e-4),
    "GPT2": ("gpt2", "GPT2", SMALL_GPT, texts(3, 12, 20), expected, 0.1),
    "Llama": ("llama", "Llama", SMALL_LLAMA, texts(3, 12, 20), expected, 0.1),
    "TextEncoder": ("text_encoder", "TextEncoder", SMALL_TEXT,
                    labelled(4, 10, 20, 3), classified, 0.1),
    "SqueezeNet, CIFAR": ("squeezenet", "squeezenet_cifar", {},
                          images((2, 3, 32, 32), 10), classified, 5e-3),
    "SqueezeNet 1.1": ("squeezenet", "squeezenet1_1",
                       {"num_classes": 10, "dropout": 0.0},
                       images((2, 3, 64, 64), 10), classified, 5e-3),
    "SqueezeNet 1.0": ("squeezenet", "squeezenet1_0",
                       {"num_classes": 10, "dropout": 0.0},
                       images((2, 3, 64, 64), 10), classified, 5e-3),
    "ResNet-18, CIFAR": ("resnet", "resnet18", CIFAR,
                         images((3, 3, 32, 32), 10), classified, 0.01),
    "ResNet-34": ("resnet", "resnet34", {"num_classes": 10},
                  images((3, 3, 64, 64), 10), classified, 0.01),
    "ResNet-50, CIFAR": ("resnet", "resnet50", CIFAR,
                         images((3, 3, 32, 32), 10), classified, 0.01),
    "MobileNetV2": ("mobilenet", "mobilenet_v2", {"num_classes": 10, "dropout": 0.0},
                    images((3, 3, 64, 64), 10), classified, 0.01),
}  # fmt: skip


class Pair:
    """A model twice, with equal weights in float64.

    Args:
        name: its name among ``MODELS``.
        seed: of its weights and batches.
    """

    def __init__(self, name, seed=0):
        import torch

        file, model, options, self.batch, self.loss, rate = MODELS[name]
        self.theirs = torch
        self.rng = np.random.default_rng(seed)
        torch.manual_seed(seed)
        self.other = twin(file, model)(**options).double()
        self.model = mine(file, model)(**options).double()
        self.synchronise()
        nesterov = {"momentum": 0.9, "nesterov": True}
        self.optimisers = [
            t.optim.SGD(m.parameters(), lr=rate, **nesterov)
            for t, m in ((ours, self.model), (torch, self.other))
        ]

    def synchronise(self):
        """Give Lantern's model the weights of PyTorch's."""
        state = self.other.state_dict()
        self.model.load_state_dict(
            {name: ours.tensor(x.numpy().copy()) for name, x in state.items()}
        )

    def step(self, clip=400.0):
        """A step of both; how far apart losses, gradients and weights are then."""
        x, y = self.batch(self.rng)
        losses = []
        sides = (ours, self.model), (self.theirs, self.other)
        for (t, model), optimiser in zip(sides, self.optimisers, strict=True):
            optimiser.zero_grad()
            # Arrays are given as copies: what shares memory could be written to.
            loss = self.loss(t, model, t.tensor(x), t.tensor(y))
            loss.backward()
            losses.append(loss.item())
        grads = [arrays(p.grad for p in m.parameters()) for _, m in sides]
        for (t, model), optimiser in zip(sides, self.optimisers, strict=True):
            t.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimiser.step()
        states = [arrays(m.state_dict().values()) for _, m in sides]
        return abs(losses[0] / losses[1] - 1), far(*grads), far(*states)


def arrays(tensors):
    """Tensors as plain arrays."""
    return [np.array(x.detach().numpy()) for x in tensors]


def far(mine, theirs):
    """How far arrays are from others, beside the largest number of each.

    What is nothing but rounding (the gradient of a bias that a normalisation takes away
    again) is measured beside 1e-5 of the largest number of all.
    """
    largest = [np.abs(b).max(initial=0.0) for b in theirs]
    least = 1e-5 * max(largest)
    return max(
        float(np.abs(a - b).max(initial=0.0) / max(scale, least))
        for a, b, scale in zip(mine, theirs, largest, strict=True)
    )
