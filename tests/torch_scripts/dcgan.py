"""A generator and a discriminator of images, in turns."""

import torch
import torch.nn as nn
import torch.optim as optim
from common import draw, report, same_start


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(8, 12, 4, 1, 0, bias=False),
            nn.BatchNorm2d(12),
            nn.ReLU(True),
            nn.ConvTranspose2d(12, 6, 4, 2, 1, bias=False),
            nn.BatchNorm2d(6),
            nn.ReLU(True),
            nn.ConvTranspose2d(6, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, 6, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(6, 12, 4, 2, 1, bias=False),
            nn.BatchNorm2d(12),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(12, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1)


def main():
    g, d = same_start(Generator(), 1), same_start(Discriminator(), 2)
    criterion = nn.BCELoss()
    optimizer_d = optim.Adam(d.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizer_g = optim.Adam(g.parameters(), lr=2e-3, betas=(0.5, 0.999))
    real = torch.tanh(draw(6, 1, 16, 16))
    for step in range(20):
        d.zero_grad()
        label = torch.full((6,), 1.0)
        error_real = criterion(d(real), label)
        error_real.backward()
        fake = g(draw(6, 8, 1, 1, seed=step))
        label.fill_(0.0)
        error_fake = criterion(d(fake.detach()), label)
        error_fake.backward()
        optimizer_d.step()
        g.zero_grad()
        label.fill_(1.0)
        error_g = criterion(d(fake), label)
        error_g.backward()
        optimizer_g.step()
        report(step, error_real + error_fake, error_g)


if __name__ == "__main__":
    main()
