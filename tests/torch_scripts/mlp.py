"""A perceptron on digits that nobody wrote: the first tutorial."""

import torch
from common import classes, draw, report, same_start
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(28 * 28, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = x.view(-1, 28 * 28)
        x = torch.relu(self.fc1(x))
        return self.fc2(x)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = same_start(Net(), scale=0.05).to(device)
    data = TensorDataset(draw(160, 1, 28, 28), classes(10, 160))
    loader = DataLoader(data, batch_size=32, shuffle=False)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = 0
    for _ in range(4):
        model.train()
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            output = model(images)
            loss = criterion(output, labels)
            loss.backward()
            optimizer.step()
            report(step, loss.item())
            step += 1
    model.eval()
    with torch.no_grad():
        images, labels = (x.to(device) for x in data.tensors)
        output = model(images)
        correct = (output.argmax(dim=1) == labels).sum().item()
    print(f"accuracy {correct / len(data):.4f}")


if __name__ == "__main__":
    main()
