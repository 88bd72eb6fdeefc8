"""A spiral's equation of motion, learnt through Euler's steps."""

import torch
import torch.nn as nn
from common import report, same_start


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def odeint(func, y0, t):
    ys = [y0]
    for i in range(len(t) - 1):
        ys.append(ys[-1] + (t[i + 1] - t[i]) * func(t[i], ys[-1]))
    return torch.stack(ys)


def main():
    t = torch.linspace(0.0, 0.3, 16)
    true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    y0 = torch.tensor([[2.0, 0.0]])
    with torch.no_grad():
        true_y = odeint(lambda t, y: torch.mm(y**3, true_A), y0, t)
    func = same_start(ODEFunc(), scale=0.1)
    optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-3, momentum=0.5)
    for step in range(20):
        optimizer.zero_grad()
        pred_y = odeint(func, y0, t)
        loss = torch.mean(torch.abs(pred_y - true_y))
        loss.backward()
        optimizer.step()
        report(step, loss.item())


if __name__ == "__main__":
    main()
