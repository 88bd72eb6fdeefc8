"""Words by their neighbours: skip-gram with negative samples."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import random, report, same_start

TEXT = "we are about to study the idea of a computational process in a machine " * 4


class SkipGram(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.u = nn.Embedding(vocab, width)
        self.v = nn.Embedding(vocab, width)

    def forward(self, u_pos, v_pos, v_neg):
        u, v = self.u(u_pos), self.v(v_pos)
        score = torch.sum(torch.mul(u, v), dim=1)
        loss = F.logsigmoid(score)
        negative = torch.bmm(self.v(v_neg), u.unsqueeze(2)).squeeze(2)
        return -(loss + F.logsigmoid(-negative).sum(1)).mean()


def main():
    words = TEXT.split()
    index = {w: i for i, w in enumerate(sorted(set(words)))}
    ids = [index[w] for w in words]
    pairs = [
        (ids[i], ids[j])
        for i in range(len(ids))
        for j in range(max(0, i - 2), min(len(ids), i + 3))
        if i != j
    ]
    model = same_start(SkipGram(len(index), 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    draws = random(2)
    for step in range(20):
        batch = [pairs[i] for i in draws.integers(0, len(pairs), 16)]
        u, v = torch.tensor(batch).t()
        negative = torch.from_numpy(draws.integers(0, len(index), (16, 4)))
        loss = model(u, v, negative)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        report(step, loss)


if __name__ == "__main__":
    main()
