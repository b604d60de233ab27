"""class: custom translation raises
stage: translation
thread: none
expect: error
rule: translation-raised
fix: the translation reads a key that does not exist
"""

import onnxscript
import torch

op = onnxscript.values.Opset("", 18)
MODES = {"none": "Erf"}


@torch.library.custom_op("lab_o44::act", mutates_args=())
def act(x: torch.Tensor, mode: str) -> torch.Tensor:
    return torch.tanh(x)


@act.register_fake
def _(x, mode):
    return torch.empty_like(x)


def translate_act(x, mode):
    return getattr(op, MODES[mode])(x)  # BLAME


class Net(torch.nn.Module):
    def forward(self, x):
        return act(x + 1, "tanh")


def build():
    return Net().eval(), (torch.randn(3),), {}, {"custom_translation_table": {torch.ops.lab_o44.act.default: translate_act}}
