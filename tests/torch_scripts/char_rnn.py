"""A network that learns the next character, step by step, with a cell."""

import torch
import torch.nn as nn
from common import report, same_start

TEXT = "the quick brown fox jumps over the lazy dog. the dog sleeps on. " * 3
CHARS = sorted(set(TEXT))


class CharRNN(nn.Module):
    def __init__(self, n, hidden):
        super().__init__()
        self.hidden = hidden
        self.embed = nn.Embedding(n, 12)
        self.cell = nn.LSTMCell(12, hidden)
        self.decoder = nn.Linear(hidden, n)

    def forward(self, x, state):
        h, c = self.cell(self.embed(x), state)
        return self.decoder(h), (h, c)

    def init_hidden(self, batch):
        return torch.zeros(batch, self.hidden), torch.zeros(batch, self.hidden)


def main():
    index = {c: i for i, c in enumerate(CHARS)}
    data = torch.tensor([index[c] for c in TEXT])
    model = same_start(CharRNN(len(CHARS), 24))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.005)
    criterion = nn.CrossEntropyLoss()
    for step in range(20):
        starts = [step, step + 40, step + 80]
        chunk = torch.stack([data[s : s + 16] for s in starts])
        state = model.init_hidden(len(starts))
        optimizer.zero_grad()
        loss = 0
        for t in range(15):
            output, state = model(chunk[:, t], state)
            loss += criterion(output, chunk[:, t + 1])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        report(step, loss.item() / 15)


if __name__ == "__main__":
    main()
