"""Parts of speech from a bidirectional network on packed sentences."""

import torch
import torch.nn as nn
from common import report, same_start
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

SENTENCES = [
    ("the dog ate the apple".split(), "D N V D N".split()),
    ("everybody read that book".split(), "N V D N".split()),
    ("she sleeps".split(), "N V".split()),
]


class Tagger(nn.Module):
    def __init__(self, words, tags):
        super().__init__()
        self.embed = nn.Embedding(words + 1, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 6, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(12, tags)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(
            self.embed(x), lengths, batch_first=True, enforce_sorted=False
        )
        out, _ = self.lstm(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return self.out(out)


def main():
    words, tags = {}, {}
    for sentence, marks in SENTENCES:
        for word in sentence:
            words.setdefault(word, len(words) + 1)
        for mark in marks:
            tags.setdefault(mark, len(tags))
    order = [2, 0, 1]
    rows = [torch.tensor([words[w] for w in SENTENCES[i][0]]) for i in order]
    marks = [torch.tensor([tags[m] for m in SENTENCES[i][1]]) for i in order]
    x = pad_sequence(rows, batch_first=True)
    y = pad_sequence(marks, batch_first=True, padding_value=-1)
    lengths = torch.tensor([len(r) for r in rows])
    model = same_start(Tagger(len(words), len(tags)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    loss_fn = nn.CrossEntropyLoss(ignore_index=-1)
    for step in range(20):
        model.zero_grad()
        scores = model(x, lengths)
        loss = loss_fn(scores.view(-1, len(tags)), y.view(-1))
        loss.backward()
        optimizer.step()
        report(step, loss)
    print(model(x, lengths).argmax(-1).tolist())


if __name__ == "__main__":
    main()
