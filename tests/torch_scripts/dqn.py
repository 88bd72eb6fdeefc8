"""Values of actions from a memory of moves, with a slow copy of the network."""

from collections import deque, namedtuple

import torch
import torch.nn as nn
from common import random, report, same_start

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


def network():
    return nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))


def main():
    draws = random(3)
    policy, target = same_start(network()), network()
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2, amsgrad=True)
    memory = deque(maxlen=100)
    state = torch.from_numpy(draws.normal(size=(1, 3)))
    for step in range(32):
        if draws.random() < 0.2:
            action = torch.tensor([[int(draws.integers(2))]], dtype=torch.long)
        else:
            with torch.no_grad():
                action = policy(state).max(1).indices.view(1, 1)
        push = 1.0 if action.item() else -1.0
        ended = draws.random() < 0.1
        following = 0.8 * state + 0.2 * push
        reward = torch.tensor([-following.abs().sum().item()])
        memory.append(Transition(state, action, None if ended else following, reward))
        state = torch.from_numpy(draws.normal(size=(1, 3))) if ended else following
        if len(memory) < 12:
            continue
        chosen = [memory[i] for i in draws.choice(len(memory), 8, replace=False)]
        batch = Transition(*zip(*chosen, strict=True))
        going = torch.tensor([s is not None for s in batch.next_state])
        following = torch.cat([s for s in batch.next_state if s is not None])
        values = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
        next_values = torch.zeros(8)
        with torch.no_grad():
            next_values[going] = target(following).max(1).values
        expected = next_values * 0.9 + torch.cat(batch.reward)
        loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy.parameters(), 1.0)
        optimizer.step()
        slow, fast = target.state_dict(), policy.state_dict()
        for key in fast:
            slow[key] = fast[key] * 0.1 + slow[key] * 0.9
        target.load_state_dict(slow)
        report(step, loss)


if __name__ == "__main__":
    main()
