"""Sequences reversed by an encoder, and a decoder that attends to it."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import classes, report, same_start


class Encoder(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)

    def forward(self, x):
        return self.gru(self.embedding(x))


class Attention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.Wa = nn.Linear(hidden, hidden)
        self.Ua = nn.Linear(hidden, hidden)
        self.Va = nn.Linear(hidden, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        weights = F.softmax(scores.squeeze(2).unsqueeze(1), dim=-1)
        return torch.bmm(weights, keys), weights


class Decoder(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.attention = Attention(hidden)
        self.gru = nn.GRU(2 * hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, outputs, hidden, target):
        word = torch.zeros(len(target), 1, dtype=torch.long)
        found = []
        for t in range(target.size(1)):
            query = hidden.permute(1, 0, 2)
            context, _ = self.attention(query, outputs)
            x = torch.cat((self.embedding(word), context), dim=2)
            output, hidden = self.gru(x, hidden)
            found.append(self.out(output))
            word = target[:, t].unsqueeze(1)
        return F.log_softmax(torch.cat(found, dim=1), dim=-1)


def main():
    vocab, hidden = 9, 12
    model = nn.ModuleList([Encoder(vocab, hidden), Decoder(vocab, hidden)])
    same_start(model)
    encoder, decoder = model
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.02) for m in model]
    x = classes(vocab, 6, 5)
    y = x.flip(1)
    for step in range(20):
        for optimizer in optimizers:
            optimizer.zero_grad()
        outputs, state = encoder(x)
        scores = decoder(outputs, state, y)
        loss = nn.NLLLoss()(scores.view(-1, scores.size(-1)), y.reshape(-1))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        report(step, loss)


if __name__ == "__main__":
    main()
