"""Networks of the papers, given once for a ``torch`` that is either library."""

from typing import Any


def squeezenet(torch: Any) -> Any:
    """SqueezeNet for images of 32 by 32 pixels: eight fire modules, three pools."""
    nn = torch.nn

    class Fire(nn.Module):  # type: ignore[name-defined]
        def __init__(self, n: int, few: int, many: int) -> None:
            super().__init__()
            self.squeeze = nn.Conv2d(n, few, 1)
            self.one = nn.Conv2d(few, many, 1)
            self.three = nn.Conv2d(few, many, 3, padding=1)

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.squeeze(x))
            return torch.cat([torch.relu(self.one(x)), torch.relu(self.three(x))], 1)

    def pool() -> Any:
        return nn.MaxPool2d(3, 2)

    return nn.Sequential(
        *(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), pool()),
        *(Fire(64, 16, 64), Fire(128, 16, 64), pool()),
        *(Fire(128, 32, 128), Fire(256, 32, 128), pool()),
        *(Fire(256, 48, 192), Fire(384, 48, 192)),
        *(Fire(384, 64, 256), Fire(512, 64, 256)),
        *(nn.Conv2d(512, 10, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    )


def resnet(torch: Any, counts: tuple[int, ...], wide: bool) -> Any:
    """ResNet for small images: a stem of 3 by 3, no pool behind it.

    Args:
        torch: either library.
        counts: of blocks, in each of four stages.
        wide: whether a block is a bottleneck of three convolutions, or has two.
    """
    nn = torch.nn
    out = 4 if wide else 1

    def unit(n: int, m: int, size: int, stride: int = 1) -> Any:
        conv = nn.Conv2d(n, m, size, stride, size // 2, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(m))

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self, n: int, m: int, stride: int) -> None:
            super().__init__()
            sizes = [(n, m, 1, 1), (m, m, 3, stride), (m, out * m, 1, 1)]
            if not wide:
                sizes = [(n, m, 3, stride), (m, m, 3, 1)]
            self.units = nn.ModuleList([unit(*size) for size in sizes])
            same = stride == 1 and n == out * m
            self.short = nn.Identity() if same else unit(n, out * m, 1, stride)

        def forward(self, x: Any) -> Any:
            z = x
            for part in self.units[:-1]:
                z = torch.relu(part(z))
            return torch.relu(self.units[-1](z) + self.short(x))

    n, blocks = 64, []
    for stage, count in enumerate(counts):
        for i in range(count):
            m = 64 * 2**stage
            blocks.append(Block(n, m, 2 if stage and not i else 1))
            n = out * m
    stem = unit(3, 64, 3), nn.ReLU()
    return nn.Sequential(
        *stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n, 10)
    )


def deepspeech(torch: Any) -> Any:
    """Deep Speech 2, reduced: two convolutions, three LSTMs there and back."""
    nn = torch.nn

    class Speech(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.front = nn.Sequential(
                *(nn.Conv2d(1, 32, (41, 11), (2, 2), (20, 5)), nn.BatchNorm2d(32)),
                *(nn.Hardtanh(0, 20), nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5))),
                *(nn.BatchNorm2d(32), nn.Hardtanh(0, 20)),
            )
            self.lstm = nn.LSTM(32 * 41, 256, 3, bidirectional=True)
            self.out = nn.Linear(512, 29)

        def forward(self, x: Any) -> Any:
            x = self.front(x)
            x = x.reshape(x.shape[0], -1, x.shape[-1]).permute(2, 0, 1)
            return self.out(self.lstm(x)[0]).log_softmax(-1)

    return Speech()


def gpt(
    torch: Any, layers: int, wide: int, heads: int, context: int, words: int
) -> Any:
    """GPT as minGPT writes it, attention in single operations, without dropout."""
    nn = torch.nn
    functional = nn.functional

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(wide), nn.LayerNorm(wide)
            self.attend, self.project = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide)
            self.up, self.down = nn.Linear(wide, 4 * wide), nn.Linear(4 * wide, wide)
            mask = torch.tril(torch.ones(context, context))
            self.register_buffer("mask", mask.view(1, 1, context, context))

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = self.attend(self.first(x)).split(c, dim=2)
            q, k, v = (
                z.view(b, t, heads, c // heads).transpose(1, 2) for z in (q, k, v)
            )
            scores = q @ k.transpose(-2, -1) * (c // heads) ** -0.5
            scores = scores.masked_fill(self.mask == 0, float("-inf"))
            z = functional.softmax(scores, dim=-1) @ v
            x = x + self.project(z.transpose(1, 2).contiguous().view(b, t, c))
            return x + self.down(functional.gelu(self.up(self.second(x))))

    class Model(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(words, wide)
            self.places = nn.Embedding(context, wide)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = (
                nn.LayerNorm(wide),
                nn.Linear(wide, words, bias=False),
            )

        def forward(self, x: Any) -> Any:
            x = self.words(x) + self.places(torch.arange(context, device=x.device))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return Model()
