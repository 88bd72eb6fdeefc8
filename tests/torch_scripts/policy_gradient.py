"""A policy learns to stay in the middle of a line, from the rewards of episodes."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import random, report, same_start


class Line:
    """A position that the action pushes left or right, and that drifts."""

    def reset(self):
        self.x, self.v = 0.5, 0.0
        return [self.x, self.v]

    def step(self, action):
        self.v = 0.9 * self.v + (0.1 if action else -0.1)
        self.x += self.v + 0.02
        return [self.x, self.v], 1.0 - abs(self.x), abs(self.x) > 2


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, 16)
        self.affine2 = nn.Linear(16, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return F.softmax(self.affine2(F.tanh(self.affine1(x))), dim=1)


def main():
    policy = same_start(Policy())
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    environment, draws = Line(), random(4)
    for episode in range(20):
        state, done = environment.reset(), False
        for _ in range(25):
            probs = policy(torch.tensor(state).unsqueeze(0))
            action = int(draws.random() < probs[0, 1].item())
            policy.saved_log_probs.append(torch.log(probs[0, action]))
            state, reward, done = environment.step(action)
            policy.rewards.append(reward)
            if done:
                break
        total, returns = 0.0, []
        for reward in policy.rewards[::-1]:
            total = reward + 0.95 * total
            returns.insert(0, total)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-8)
        parts = []
        for log_prob, value in zip(policy.saved_log_probs, returns, strict=True):
            parts.append(-log_prob * value)
        optimizer.zero_grad()
        loss = torch.stack(parts).sum()
        loss.backward()
        optimizer.step()
        report(episode, loss, sum(policy.rewards))
        del policy.rewards[:]
        del policy.saved_log_probs[:]


if __name__ == "__main__":
    main()
