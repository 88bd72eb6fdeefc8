"""A mixture of normal densities whose parameters are a function of x."""

import math

import torch
import torch.nn as nn
from common import draw, report, same_start


class MDN(nn.Module):
    def __init__(self, hidden, mixtures):
        super().__init__()
        self.z_h = nn.Sequential(nn.Linear(1, hidden), nn.Tanh())
        self.z_pi = nn.Linear(hidden, mixtures)
        self.z_sigma = nn.Linear(hidden, mixtures)
        self.z_mu = nn.Linear(hidden, mixtures)

    def forward(self, x):
        z = self.z_h(x)
        pi = nn.functional.softmax(self.z_pi(z), -1)
        return pi, torch.exp(self.z_sigma(z)), self.z_mu(z)


def density(y, mu, sigma):
    y = y.expand_as(sigma)
    scaled = (y - mu) * torch.reciprocal(sigma)
    return torch.exp(-0.5 * scaled * scaled) / sigma / math.sqrt(2.0 * math.pi)


def main():
    y = torch.linspace(-3, 3, 40).unsqueeze(1)
    x = 2 * torch.sin(0.75 * y) + 0.5 * y + 0.1 * draw(40, 1)
    model = same_start(MDN(12, 4))
    optimizer = torch.optim.Adam(
        [
            {"params": model.z_h.parameters(), "lr": 1e-2},
            {"params": model.z_pi.parameters()},
            {"params": [*model.z_sigma.parameters(), *model.z_mu.parameters()]},
        ],
        lr=2e-2,
    )
    for step in range(20):
        pi, sigma, mu = model(x)
        loss = torch.mean(-torch.log(torch.sum(density(y, mu, sigma) * pi, dim=1)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        report(step, loss)


if __name__ == "__main__":
    main()
