"""The sentiment of sentences, by recursion over their trees."""

import torch
import torch.nn as nn
from common import report, same_start

TREES = [
    (("the", "film"), ("is", ("very", "good")), 1),
    (("a", "film"), ("not", "good"), 0),
    (("not", ("a", ("bad", "film"))), "really", 1),
]


class TreeLSTM(nn.Module):
    def __init__(self, words, size):
        super().__init__()
        self.words = {w: i for i, w in enumerate(words)}
        self.embed = nn.Embedding(len(words), size)
        self.leaf = nn.Linear(size, 2 * size)
        self.left = nn.Linear(size, 5 * size)
        self.right = nn.Linear(size, 5 * size, bias=False)
        self.out = nn.Linear(size, 2)

    def node(self, tree):
        if isinstance(tree, str):
            x = self.embed(torch.tensor(self.words[tree]))
            c, o = self.leaf(x).chunk(2, dim=-1)
            return torch.sigmoid(o) * torch.tanh(c), c
        (h1, c1), (h2, c2) = self.node(tree[0]), self.node(tree[1])
        gates = self.left(h1) + self.right(h2)
        i, f1, f2, o, u = gates.chunk(5, dim=-1)
        c = i.sigmoid() * u.tanh() + f1.sigmoid() * c1 + f2.sigmoid() * c2
        return o.sigmoid() * c.tanh(), c

    def forward(self, tree):
        return self.out(self.node(tree)[0])


def words(tree):
    return [tree] if isinstance(tree, str) else words(tree[0]) + words(tree[1])


def main():
    vocabulary = sorted({w for a, b, _ in TREES for w in words((a, b))})
    model = same_start(TreeLSTM(vocabulary, 6))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for step in range(20):
        optimizer.zero_grad()
        total = 0.0
        for a, b, label in TREES:
            scores = model((a, b)).unsqueeze(0)
            loss = nn.functional.cross_entropy(scores, torch.tensor([label]))
            loss.backward()
            total += loss.item()
        optimizer.step()
        report(step, total)


if __name__ == "__main__":
    main()
