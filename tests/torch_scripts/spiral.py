"""Three arms of a spiral, told apart by a perceptron with a penalty."""

import numpy as np
import torch
from common import random, report, same_start


def main():
    points, arms = 30, 3
    draws = random()
    xs, ys = [], []
    for arm in range(arms):
        r = np.linspace(0.0, 1, points)
        t = (
            np.linspace(arm * 4, (arm + 1) * 4, points)
            + draws.normal(size=points) * 0.2
        )
        xs.append(np.c_[r * np.sin(t), r * np.cos(t)])
        ys.append(np.full(points, arm))
    X = torch.tensor(np.concatenate(xs))
    y = torch.from_numpy(np.concatenate(ys)).long()
    model = same_start(
        torch.nn.Sequential(
            torch.nn.Linear(2, 20),
            torch.nn.SiLU(),
            torch.nn.Dropout(p=0.0),
            torch.nn.Linear(20, arms),
        )
    )
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-2, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.05, total_steps=20
    )
    for step in range(20):
        y_pred = model(X)
        loss = torch.nn.CrossEntropyLoss()(y_pred, y)
        _, predicted = torch.max(y_pred, 1)
        acc = (y == predicted).sum().float() / len(y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        report(step, loss, acc)


if __name__ == "__main__":
    main()
