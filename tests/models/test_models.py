"""The models beside the same sources on PyTorch, and beside published weights."""

import hashlib
import io

import numpy as np
import pytest

import lantern.torch as torch
from lantern import models
from tests.models import ctc, twins

# The others take long, and are compared by tests/conformance/models.py.
LARGE = {"ResNet-34", "ResNet-50, CIFAR", "SqueezeNet 1.0"}
SMALL = [name for name in twins.MODELS if name not in LARGE]


@pytest.mark.parametrize("name", SMALL)
def test_steps_are_those_of_pytorch(name):
    pytest.importorskip("torch", reason="the peer of the models")
    pair = twins.Pair(name)
    assert max(pair.step()) < 1e-9
    pair.synchronise()
    assert max(pair.step()) < 1e-9


def test_every_file_has_a_pair():
    assert {file for file, *_ in twins.MODELS.values()} == {*twins.FILES} - {"sampling"}


def test_bottlenecks_are_those_of_pytorch():
    theirs = pytest.importorskip("torch", reason="the peer of the models")
    found = []
    for t, make in ((theirs, twins.twin), (torch, twins.mine)):
        torch.manual_seed(0)
        block = make("resnet", "Bottleneck")(8, 4, 2).double()
        rng = np.random.default_rng(0)
        for p in block.parameters():
            p.data.copy_(t.tensor(rng.normal(size=tuple(p.shape))))
        x = t.tensor(rng.normal(size=(2, 8, 6, 6)), requires_grad=True)
        (block(x) ** 2).sum().backward()
        found.append(twins.arrays([x.grad, *(p.grad for p in block.parameters())]))
    assert twins.far(found[1], found[0]) < 1e-12


# The filter that importing lantern.torch sets, which pytest takes back.
@pytest.mark.filterwarnings(r"ignore::RuntimeWarning:lantern\..*")
@pytest.mark.parametrize("seed", range(60))
def test_ctc_is_that_of_pytorch(seed):
    pytest.importorskip("torch", reason="the peer of the loss")
    ctc.check(seed)


# --- published names ------------------------------------------------------------------

# Of torchvision 0.29's models: how many entries a state has, and a digest of its names
# and shapes in their order.
TORCHVISION = {
    "squeezenet1_0": (52, "4654d26ad581241f"),
    "squeezenet1_1": (52, "1d365589393f9c1e"),
    "resnet18": (122, "84fb10d9c6905a1c"),
    "resnet34": (218, "28f9096d51307499"),
    "resnet50": (320, "d7e4f8bb0a536344"),
    "mobilenet_v2": (314, "37bbbce8932fd0c4"),
}


@pytest.mark.parametrize("name", TORCHVISION)
def test_names_and_shapes_are_those_of_torchvision(name):
    state = getattr(models, name)().state_dict()
    text = "\n".join(f"{key} {tuple(x.shape)}" for key, x in state.items())
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert (len(state), digest) == TORCHVISION[name]


# Of Hugging Face's files: names with their shapes, for some sizes of a small model.
PUBLISHED = {
    "GPT2": (
        {"vocabulary": 50, "context": 8, "width": 12, "heads": 3, "layers": 1},
        {
            "wte.weight": (50, 12),
            "wpe.weight": (8, 12),
            "h.0.ln_1.weight": (12,),
            "h.0.ln_1.bias": (12,),
            "h.0.attn.c_attn.weight": (12, 36),
            "h.0.attn.c_attn.bias": (36,),
            "h.0.attn.c_proj.weight": (12, 12),
            "h.0.attn.c_proj.bias": (12,),
            "h.0.ln_2.weight": (12,),
            "h.0.ln_2.bias": (12,),
            "h.0.mlp.c_fc.weight": (12, 48),
            "h.0.mlp.c_fc.bias": (48,),
            "h.0.mlp.c_proj.weight": (48, 12),
            "h.0.mlp.c_proj.bias": (12,),
            "ln_f.weight": (12,),
            "ln_f.bias": (12,),
        },
    ),
    "Llama": (
        {"vocabulary": 50, "width": 12, "inner": 20, "heads": 6, "key_heads": 2,
         "layers": 1},
        {
            "model.embed_tokens.weight": (50, 12),
            "model.layers.0.input_layernorm.weight": (12,),
            "model.layers.0.self_attn.q_proj.weight": (12, 12),
            "model.layers.0.self_attn.k_proj.weight": (4, 12),
            "model.layers.0.self_attn.v_proj.weight": (4, 12),
            "model.layers.0.self_attn.o_proj.weight": (12, 12),
            "model.layers.0.post_attention_layernorm.weight": (12,),
            "model.layers.0.mlp.gate_proj.weight": (20, 12),
            "model.layers.0.mlp.up_proj.weight": (20, 12),
            "model.layers.0.mlp.down_proj.weight": (12, 20),
            "model.norm.weight": (12,),
            "lm_head.weight": (50, 12),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_names_and_shapes_are_the_published_ones(name):
    options, expected = PUBLISHED[name]
    state = getattr(models, name)(**options).state_dict()
    assert {key: tuple(x.shape) for key, x in state.items()} == expected


def test_weights_go_to_pytorch_and_come_back():
    theirs = pytest.importorskip("torch", reason="the peer of the models")
    model = models.squeezenet1_1(num_classes=5)
    file = io.BytesIO()
    torch.save(model.state_dict(), file, format="pytorch")
    file.seek(0)
    other = twins.twin("squeezenet", "squeezenet1_1")(num_classes=5)
    other.load_state_dict(theirs.load(file, weights_only=True))
    file = io.BytesIO()
    theirs.save(other.state_dict(), file)
    file.seek(0)
    again = models.squeezenet1_1(num_classes=5)
    again.load_state_dict(torch.load(file))
    for x, y in zip(model.parameters(), again.parameters(), strict=True):
        np.testing.assert_array_equal(x.detach().numpy(), y.detach().numpy())


# --- what models do -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["GPT2", "Llama", "CharacterRNN, LSTM"])
def test_no_token_sees_a_later_one(name):
    file, model, options, *_ = twins.MODELS[name]
    torch.manual_seed(0)
    model = twins.mine(file, model)(**options)
    tokens = torch.arange(10)[None]
    changed = tokens.clone()
    changed[0, 6:] += 5

    def scores(tokens):
        found = model(tokens)
        return found[0] if isinstance(found, tuple) else found

    before, after = scores(tokens), scores(changed)
    assert torch.allclose(before[:, :6], after[:, :6], atol=1e-6)
    assert not torch.allclose(before[:, 6:], after[:, 6:], atol=1e-6)


def test_characters_go_on_from_a_state():
    model = models.CharacterRNN(20, cell="lstm")
    tokens = torch.arange(10)[None]
    whole, _ = model(tokens)
    first, state = model(tokens[:, :4])
    rest, _ = model(tokens[:, 4:], state)
    assert torch.allclose(whole, torch.cat((first, rest), 1), atol=1e-6)


def test_a_text_is_continued():
    torch.manual_seed(0)
    model = models.GPT2(**twins.SMALL_GPT)
    tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])
    likeliest = models.generate(model, tokens, 20, temperature=0)
    assert torch.equal(likeliest[:, :3], tokens)
    assert likeliest.shape == (2, 23)
    seen = likeliest[:, 10:22]  # as many as the context has
    assert torch.equal(model(seen)[:, -1].argmax(-1), likeliest[:, 22])
    draws = [
        models.generate(model, tokens, 20, generator=torch.Generator().manual_seed(s))
        for s in (1, 1, 2)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    recurrent = models.CharacterRNN(20, cell="lstm")
    found = models.generate(recurrent, tokens, 6, temperature=0)
    for end in range(3, 9):  # the same as without a state that is kept
        scores, _ = recurrent(found[:, :end])
        assert torch.equal(scores[:, -1].argmax(-1), found[:, end])
    small = models.generate(model, tokens, 5, temperature=1e-4)
    assert torch.equal(small, likeliest[:, :8])


@pytest.mark.parametrize("frames", [40, 41, 60, 97])
@pytest.mark.parametrize("bands", [40, 41, 81, 161])
def test_the_shapes_of_deepspeech(bands, frames):
    model = models.DeepSpeech2(5, bands, hidden=4, layers=2, channels=2)
    x = torch.zeros(2, 1, bands, frames)
    assert model(x).shape == (model.steps(frames), 2, 5)


def test_the_paper_form_of_deepspeech():
    """161 bands become 41, in 32 channels."""
    model = models.DeepSpeech2(hidden=8)
    assert model.rnns[0].rnn.input_size == 41 * 32
    assert len(model.rnns) == 3
