"""Pictures through a bottleneck and back; the bottleneck is kept small."""

import torch
from common import draw, report, same_start
from torch import nn


def main():
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ELU(), nn.Linear(16, 3))
    decoder = nn.Sequential(
        nn.Linear(3, 16), nn.ELU(), nn.Linear(16, 64), nn.Unflatten(1, (8, 8))
    )
    model = same_start(nn.Sequential(encoder, decoder))
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    x = draw(10, 8, 8)
    noisy = x + 0.1 * draw(10, 8, 8, seed=1)
    for step in range(20):
        code = encoder(noisy)
        loss = nn.functional.smooth_l1_loss(decoder(code), x)
        loss = loss + 1e-3 * code.abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step(loss.detach())
        report(step, loss)


if __name__ == "__main__":
    main()
