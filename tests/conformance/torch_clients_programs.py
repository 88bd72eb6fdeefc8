"""A program for each library: what it runs, its package, its lines.

Each prints a list of numbers last. Weights and data are made by NumPy, the same ones
under both.
"""

# ruff: noqa: E501 - programs as they would be typed
START = """
import sys
if {site!r} not in sys.path:
    sys.path.append({site!r})
import json, numpy as np, torch, torch.nn as nn, torch.nn.functional as F
_draws = np.random.RandomState(0)
def data(*shape):
    return torch.tensor(_draws.randn(*shape), dtype=torch.float32)
def same(model):
    draws = np.random.RandomState(1)
    with torch.no_grad():
        for _, p in sorted(model.named_parameters()):
            p.copy_(torch.tensor(draws.randn(*p.shape) * 0.1).to(p.dtype))
    return model
def train(model, call, optimizer=None, steps=4):
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.01)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = call()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found
def say(numbers):
    print()
    print(json.dumps([float(x) for x in numbers]))
def mlp():
    return same(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
x, y = data(16, 4), data(16, 1)
"""

PROGRAMS = {
    "einops": ("rearrange, reduce, a layer in training", "einops", """
from einops import rearrange, reduce
from einops.layers.torch import Rearrange
net = same(nn.Sequential(Rearrange('b (h w) -> b (w h)', h=2), nn.Linear(4, 1)))
say(train(net, lambda: reduce(rearrange(net(x) - y, 'b c -> c b') ** 2, 'c b -> ', 'mean')))
"""),
    "torchdiffeq": ("dopri5 and its adjoint", "torchdiffeq", """
from torchdiffeq import odeint, odeint_adjoint
f = same(nn.Linear(4, 4))
t = torch.tensor([0., 1.])
say(train(f, lambda: (odeint_adjoint(lambda t, z: f(z), x, t, adjoint_params=tuple(f.parameters()))[-1] ** 2).mean())
    + train(f, lambda: (odeint(lambda t, z: f(z), x, t)[-1] ** 2).mean()))
"""),
    "higher": ("MAML's inner loop", "higher", """
import higher
net = mlp(); inner = torch.optim.SGD(net.parameters(), lr=0.1)
def outer():
    with higher.innerloop_ctx(net, inner, copy_initial_weights=False) as (f, opt):
        for _ in range(2):
            opt.step(F.mse_loss(f(x), y))
        return F.mse_loss(f(x * 2), y)
say(train(net, outer))
"""),
    "torch_optimizer": ("five optimisers", "torch_optimizer", """
import torch_optimizer as to
found = []
for kind in (to.RAdam, to.DiffGrad, to.AdaBound, to.Yogi, to.Lamb):
    net = mlp()
    found += train(net, lambda: F.mse_loss(net(x), y), kind(net.parameters(), lr=0.01))
say(found)
"""),
    "pytorch_optimizer": ("five optimisers", "pytorch_optimizer", """
import pytorch_optimizer as po
found = []
for name in ("lion", "adabelief", "adan", "lamb", "sophiah"):
    net = mlp()
    kind = po.load_optimizer(name)
    found += train(net, lambda: F.mse_loss(net(x), y), kind(net.parameters(), lr=0.01)) if name != "sophiah" else []
say(found)
"""),
    "torchvision": ("ResNet-18 and Faster R-CNN in training; transforms of tensors; a PNG", "torchvision", """
import torchvision
from torchvision.transforms import v2
net = same(torchvision.models.resnet18(num_classes=3))
def detected():
    torch.randperm = lambda n, **options: torch.arange(n)  # which regions are drawn
    net = same(torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=3, min_size=96, max_size=96)).train()
    target = dict(boxes=torch.tensor([[9., 9., 60., 50.], [20., 30., 80., 90.]]), labels=torch.tensor([1, 2]))
    picture = data(3, 96, 96)
    return train(net, lambda: sum(net([picture], [target]).values()), torch.optim.SGD(net.parameters(), 1e-3), steps=2)
image = data(4, 3, 64, 64)  # of two images of 32 x 32, a channel's moments at last are of two numbers: PyTorch itself differs by 17 % from double precision
say(train(net, lambda: F.cross_entropy(net(image), torch.tensor([0, 2, 1, 1])), torch.optim.SGD(net.parameters(), 1e-3))
    + v2.functional.resize(image, [8, 8], antialias=True).flatten()[:9].tolist()
    + torchvision.transforms.Normalize((0.5,) * 3, (2.,) * 3)(image).flatten()[:3].tolist()
    + detected() + torchvision.io.decode_image(torchvision.io.encode_png(image[0].byte())).flatten()[:9].tolist())
"""),
    "torchaudio": ("mel spectrogram, filters and a transducer's loss in training; an alignment", "torchaudio", """
import torchaudio.functional as F_audio, torchaudio.transforms as T
sound = data(2, 800) * 0.1
net = mlp()
net[0] = same(nn.Linear(10, 8))
mel = T.MelSpectrogram(8000, n_fft=64, n_mels=10)
poles = nn.Parameter(torch.tensor([1.0, -0.5, 0.2]))
def filtered():
    return F_audio.lfilter(sound, poles, torch.tensor([0.3, 0.1, 0.4]), clamp=False)
found = train(nn.ParameterList([poles, *net.parameters()]), lambda: net(mel(filtered()).mT).pow(2).mean())
joint = same(nn.Linear(3, 5))
frames, names = data(2, 6, 4, 3), torch.tensor([[0, 1, 2], [3, 1, 0]], dtype=torch.int32)
lengths = torch.tensor([6, 5], dtype=torch.int32), torch.tensor([3, 2], dtype=torch.int32)
found += train(joint, lambda: F_audio.rnnt_loss(joint(frames), names, *lengths))
path, scores = F_audio.forced_align(joint(frames[:1, :, 0]).detach().log_softmax(-1), names[:1, 1:])
say(found + path[0].tolist() + scores[0].tolist())
"""),
    "timm": ("ten models", "timm", """
import timm
found = []
for name in ("resnet18", "vit_tiny_patch16_224", "mobilenetv3_small_050", "efficientnet_b0", "convnext_atto",
             "regnetx_002", "mixer_s32_224", "deit_tiny_patch16_224", "densenet121", "ghostnet_050"):
    size = 224 if "224" in name else 64
    net = same(timm.create_model(name, num_classes=3)).eval()
    image = data(1, 3, size, size)
    found += train(net, lambda: F.cross_entropy(net(image), torch.tensor([1])), torch.optim.SGD(net.parameters(), 1e-3), steps=2)
say(found)
"""),
    "transformers": ("GPT-2, BERT, LLaMA, T5, ViT; its Trainer", "transformers", """
import transformers as tf
small = dict(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
ids = torch.tensor(_draws.randint(0, 50, (2, 8)))
off = dict(attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0)
found = []
for net in (tf.GPT2LMHeadModel(tf.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=16, resid_pdrop=0., embd_pdrop=0., attn_pdrop=0.)),
            tf.BertForMaskedLM(tf.BertConfig(**small, **off)), tf.LlamaForCausalLM(tf.LlamaConfig(**small))):
    same(net)
    found += train(net, lambda: net(input_ids=ids, labels=ids).loss)
net = same(tf.T5ForConditionalGeneration(tf.T5Config(vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, dropout_rate=0., decoder_start_token_id=0)))
found += train(net, lambda: net(input_ids=ids, labels=ids).loss)
net = same(tf.ViTForImageClassification(tf.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=8, num_labels=3, **off)))
image = data(2, 3, 16, 16)
found += train(net, lambda: net(pixel_values=image, labels=torch.tensor([0, 2])).loss)
import tempfile
net = same(tf.GPT2LMHeadModel(tf.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=16, resid_pdrop=0., embd_pdrop=0., attn_pdrop=0.)))
rows = [{"input_ids": row, "labels": row} for row in torch.tensor(_draws.randint(0, 50, (8, 8)))]
with tempfile.TemporaryDirectory() as folder:
    options = tf.TrainingArguments(folder, num_train_epochs=2, per_device_train_batch_size=4, logging_steps=1, report_to=[], save_strategy="epoch", use_cpu=True, disable_tqdm=True)
    class InOrder(tf.Trainer):
        def _get_train_sampler(self, *args):
            return torch.utils.data.SequentialSampler(self.train_dataset)
    trainer = InOrder(model=net, args=options, train_dataset=rows)
    trainer.train()
    found += [row["loss"] for row in trainer.state.log_history if "loss" in row]
    found += [trainer.evaluate(rows)["eval_loss"]]
say(found)
"""),
    "peft": ("LoRA on GPT-2", "peft", """
import transformers as tf
from peft import LoraConfig, get_peft_model
net = tf.GPT2LMHeadModel(tf.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=16, resid_pdrop=0., embd_pdrop=0., attn_pdrop=0.))
net = same(get_peft_model(net, LoraConfig(r=4, target_modules=["c_attn"], lora_dropout=0.0, fan_in_fan_out=True)))
ids = torch.tensor(_draws.randint(0, 50, (2, 8)))
say(train(net, lambda: net(input_ids=ids, labels=ids).loss, torch.optim.Adam([p for p in net.parameters() if p.requires_grad], 0.01)))
"""),
    "accelerate": ("training, save and load", "accelerate", """
import tempfile
from accelerate import Accelerator
a = Accelerator(cpu=True)
net = mlp(); opt = torch.optim.Adam(net.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
net, opt, loader = a.prepare(net, opt, loader)
found = []
def epoch():
    for u, v in loader:
        opt.zero_grad(); loss = F.mse_loss(net(u), v); a.backward(loss); opt.step(); found.append(loss.item())
epoch()
with tempfile.TemporaryDirectory() as folder:
    a.save_state(folder); epoch(); a.load_state(folder); epoch()
say(found)
"""),
    "lightning": ("fit, checkpoint, resume", "lightning", """
import tempfile, lightning as L
class Net(L.LightningModule):
    def __init__(self):
        super().__init__(); self.net = mlp(); self.seen = []
    def training_step(self, batch, i):
        loss = F.mse_loss(self.net(batch[0]), batch[1]); self.seen.append(loss.item()); return loss
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
quiet = dict(accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False)
with tempfile.TemporaryDirectory() as folder:
    one = Net(); t = L.Trainer(max_epochs=2, default_root_dir=folder, enable_checkpointing=False, **quiet); t.fit(one, loader)
    t.save_checkpoint(folder + "/c.ckpt")
    two = Net(); L.Trainer(max_epochs=4, default_root_dir=folder, enable_checkpointing=False, **quiet).fit(two, loader, ckpt_path=folder + "/c.ckpt")
say(one.seen + two.seen)
"""),
    "torchmetrics": ("eight metrics", "torchmetrics", """
import torchmetrics as tm
p, t = data(20, 3).softmax(-1), torch.tensor(_draws.randint(0, 3, 20))
kind = dict(task="multiclass", num_classes=3)
found = [m(p, t) for m in (tm.Accuracy(**kind), tm.F1Score(**kind, average="macro"), tm.AUROC(**kind), tm.CohenKappa(**kind), tm.MatthewsCorrCoef(**kind))]
found += [m(data(10), data(10)) for m in (tm.MeanSquaredError(), tm.PearsonCorrCoef(), tm.SpearmanCorrCoef())]
say(found)
"""),
    "torchinfo": ("summary", "torchinfo", """
from torchinfo import summary
s = summary(mlp(), (16, 4), verbose=0)
say([s.total_params, s.trainable_params, s.total_mult_adds, s.total_output_bytes])
"""),
    "skorch": ("fit and predict", "skorch", """
from skorch import NeuralNetRegressor
net = NeuralNetRegressor(mlp(), max_epochs=4, lr=0.1, iterator_train__shuffle=False, train_split=None, verbose=0)
net.initialize(); same(net.module_)
net.partial_fit(x.numpy(), y.numpy())
say([h["train_loss"] for h in net.history] + net.predict(x.numpy()).ravel().tolist())
"""),
    "torch_geometric": ("GCN and GAT", "torch_geometric", """
from torch_geometric.nn import GCNConv, GATConv
edges = torch.tensor(_draws.randint(0, 16, (2, 40)))
found = []
for kind in (GCNConv, GATConv):
    conv = same(kind(4, 1))
    found += train(conv, lambda: F.mse_loss(conv(x, edges), y))
say(found)
"""),
    "captum": ("integrated gradients, saliency, ablation", "captum", """
from captum.attr import IntegratedGradients, Saliency, FeatureAblation
net = mlp()
found = []
for kind in (IntegratedGradients, Saliency, FeatureAblation):
    found += kind(net).attribute(x.clone().requires_grad_() , target=0).flatten()[:20].tolist()
say(found)
"""),
    "ignite": ("an engine with metrics", "pytorch-ignite", """
from ignite.engine import create_supervised_trainer, create_supervised_evaluator, Events
from ignite.metrics import MeanSquaredError
net = mlp(); opt = torch.optim.SGD(net.parameters(), lr=0.1)
loader = [(x[:8], y[:8]), (x[8:], y[8:])]
trainer = create_supervised_trainer(net, opt, nn.MSELoss())
evaluator = create_supervised_evaluator(net, metrics={"mse": MeanSquaredError()})
found = []
@trainer.on(Events.ITERATION_COMPLETED)
def keep(engine): found.append(engine.state.output)
trainer.run(loader, max_epochs=2)
say(found + [evaluator.run(loader).metrics["mse"]])
"""),
    "gpytorch": ("an exact Gaussian process", "gpytorch", """
import gpytorch
class GP(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean, self.cov = gpytorch.means.ConstantMean(), gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.cov(x))
like = gpytorch.likelihoods.GaussianLikelihood()
gp = GP(x, y[:, 0], like); gp.train(); like.train()
mll = gpytorch.mlls.ExactMarginalLogLikelihood(like, gp)
found = train(gp, lambda: -mll(gp(x), y[:, 0]), torch.optim.Adam(gp.parameters(), 0.1))
gp.eval(); like.eval()
say(found + like(gp(x[:3] + 0.1)).mean.tolist())
"""),
    "botorch": ("a single-task process, expected improvement", "botorch", """
import botorch, gpytorch
from botorch.models import SingleTaskGP
from botorch.acquisition import LogExpectedImprovement
X = torch.tensor(_draws.rand(10, 2)); Y = (X ** 2).sum(-1, keepdim=True)
gp = SingleTaskGP(X, Y)
mll = gpytorch.mlls.ExactMarginalLogLikelihood(gp.likelihood, gp)
botorch.fit_gpytorch_mll(mll)
say(LogExpectedImprovement(gp, Y.max())(X[:4, None] * 0.9).tolist() + gp.posterior(X[:3] * 0.9).mean.flatten().tolist())
"""),
    "pyro": ("SVI; NUTS", "pyro-ppl", """
import pyro, pyro.distributions as dist
from pyro.infer import SVI, Trace_ELBO, MCMC, NUTS
from pyro.infer.autoguide import AutoDelta
def model(v):
    m = pyro.sample("m", dist.Normal(0., 5.)); s = pyro.sample("s", dist.HalfNormal(2.))
    with pyro.plate("n", len(v)):
        pyro.sample("v", dist.Normal(m, s), obs=v)
v = y[:, 0] + 3
guide = AutoDelta(model, init_loc_fn=pyro.infer.autoguide.init_to_value(values={"m": torch.tensor(1.), "s": torch.tensor(1.)}))
svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
found = [svi.step(v) for _ in range(20)]
mcmc = MCMC(NUTS(model), num_samples=300, warmup_steps=100, disable_progbar=True); mcmc.run(v)
near = abs(mcmc.get_samples()["m"].mean().item() - v.mean().item()) < 0.3
say(found + [near])
"""),
    "stable_baselines3": ("PPO and DQN on a pole", "stable-baselines3", """
from stable_baselines3 import PPO, DQN
import gymnasium
env = gymnasium.make("CartPole-v1")
PPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=2, device="cpu").learn(128)
DQN("MlpPolicy", env, learning_starts=50, device="cpu").learn(150)
policy = PPO("MlpPolicy", env, n_steps=64, device="cpu").policy
same(policy)
say(policy.predict_values(x).flatten().tolist() + policy.evaluate_actions(x, torch.zeros(16))[1].tolist())
"""),
    "safetensors": ("save and load", "safetensors", """
import tempfile, safetensors.torch as st
net = mlp()
with tempfile.TemporaryDirectory() as folder:
    st.save_model(net, folder + "/a.safetensors"); other = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    st.load_model(other, folder + "/a.safetensors")
say(other(x).flatten().tolist() + [len(st.save(net.state_dict()))])
"""),
}  # fmt: skip
