"""Pairs of pictures, alike or not, told by the distance of their codes."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import draw, report, same_start


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(1, 4, kernel_size=3),
            nn.GroupNorm(2, 4),
            nn.PReLU(),
            nn.AvgPool2d(2),
        )
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(64, 5))

    def forward_once(self, x):
        return F.normalize(self.fc(self.cnn(x)))

    def forward(self, a, b):
        return self.forward_once(a), self.forward_once(b)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, a, b, label):
        distance = F.pairwise_distance(a, b, keepdim=True)
        near = (1 - label) * torch.pow(distance, 2)
        far = label * torch.pow(torch.clamp(self.margin - distance, min=0.0), 2)
        return torch.mean(near + far)


def main():
    model = same_start(Siamese())
    criterion = ContrastiveLoss()
    a, b = draw(8, 1, 8, 8), draw(8, 1, 8, 8, seed=1)
    label = torch.tensor([0.0, 1.0] * 4).unsqueeze(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, dampening=0.1)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5)
    cool = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cool], [5])
    for step in range(20):
        optimizer.zero_grad()
        loss = criterion(*model(a, b), label)
        loss.backward()
        optimizer.step()
        schedule.step()
        report(step, loss)


if __name__ == "__main__":
    main()
