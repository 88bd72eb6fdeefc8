"""A convolutional network with batch normalisation and a schedule."""

import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from common import classes, draw, report, same_start


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, kernel_size=3, padding=1)
        self.bn = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 8, 3, stride=2)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.0)
        self.fc = nn.Linear(8 * 3 * 3, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.bn(self.conv1(x))))
        x = F.relu(self.conv2(x))
        x = self.dropout(x.flatten(1))
        return F.log_softmax(self.fc(x), dim=1)


def main():
    model = same_start(Net())
    x, y = draw(16, 1, 14, 14), classes(10, 16)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
    for step in range(20):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        report(step, loss, scheduler.get_last_lr()[0])
    model.eval()
    report("eval", F.nll_loss(model(x), y))


if __name__ == "__main__":
    main()
