"""Logistic regression with a quasi-Newton method and a penalty."""

import torch
from common import draw, report, same_start


def main():
    x = draw(60, 4)
    y = (
        (x @ torch.tensor([1.0, -2.0, 0.5, 0.0])) + 0.3 * draw(60, seed=1) > 0
    ).double()
    model = same_start(torch.nn.Linear(4, 1))
    criterion = torch.nn.BCEWithLogitsLoss()
    optimizer = torch.optim.LBFGS(
        model.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(-1), y)
        loss = loss + 0.01 * (model.weight**2).sum()
        loss.backward()
        return loss

    for step in range(20):
        report(step, optimizer.step(closure))
    accuracy = ((model(x)[:, 0] > 0) == (y > 0.5)).double().mean()
    print(f"accuracy {accuracy.item():.3f}", model.weight.detach().numpy().round(4))


if __name__ == "__main__":
    main()
