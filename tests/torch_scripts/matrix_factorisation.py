"""Ratings as products of what is known of users and of items."""

import torch
from common import classes, draw, report, same_start
from torch import nn


class Factors(nn.Module):
    def __init__(self, users, items, width=5):
        super().__init__()
        self.users = nn.Embedding(users, width)
        self.items = nn.Embedding(items, width)
        self.user_bias = nn.Embedding(users, 1)
        self.item_bias = nn.Embedding(items, 1)
        self.mean = nn.Parameter(torch.zeros(1))

    def forward(self, user, item):
        product = (self.users(user) * self.items(item)).sum(1, keepdim=True)
        return (product + self.user_bias(user) + self.item_bias(item) + self.mean)[:, 0]


def main():
    model = same_start(Factors(20, 15))
    user, item = classes(20, 100), classes(15, 100, seed=1)
    rating = draw(100) + 3
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1, weight_decay=1e-3)
    for step in range(20):
        optimizer.zero_grad()
        loss = nn.MSELoss()(model(user, item), rating)
        loss.backward()
        optimizer.step()
        report(step, loss.sqrt())


if __name__ == "__main__":
    main()
