"""class: torch.distributions
stage: capture
thread: none
expect: ok
rule: none
fix: none needed: a distribution only checks its arguments
"""

import torch


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 3)

    def forward(self, obs):
        dist = torch.distributions.Categorical(logits=self.net(obs))
        action = dist.probs.argmax(-1)
        return action, dist.log_prob(action), dist.entropy()


def build():
    return Policy().eval(), (torch.randn(5, 4),), {}, {"dynamic_shapes": {"obs": {0: "batch"}}}


def second_inputs():
    return [((torch.randn(2, 4),), {})]
