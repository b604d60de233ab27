"""Rules about values and loops that capture turns into fixed parts of the graph."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class HostValueBaked(Rule, id="OXP1014", level=Level.WARNING, history=[Added("0.1.0")]):
    """Python or numpy drew a random number or read a clock during capture.

    What happened:
        `forward` calls a Python or numpy function with a different result each time, such as `random.random()` or `time.time()`.
        Capture runs `forward` once, and the result of that run is a constant of the graph.

    Why it matters:
        Every run of the exported model uses this one result.

    How to fix it:
        1. Draw the number with torch, which makes it an operator of the graph: `torch.rand(())`.
        2. Take the number as an input of `forward`, and let the caller draw it.
        3. If the number matters only in training, skip the line in evaluation: `if self.training:`.

    Example:
        ```python
        import random

        import torch

        import onnxplain


        class Jitter(torch.nn.Module):
            def forward(self, x):
                return x * random.random()  # OXP1014


        program = onnxplain.export(Jitter(), (torch.ones(3),))
        ```

        ```python
        import random

        import torch

        import onnxplain


        class Jitter(torch.nn.Module):
            def forward(self, x, amount):
                return x * amount


        program = onnxplain.export(Jitter(), (torch.ones(3), torch.tensor(random.random())))
        ```
    """

    generator: str

    message = "The result of '{generator}' during capture is a constant of the exported model."


class RandomOperator(Rule, id="OXP1015", level=Level.WARNING, history=[Added("0.1.0")]):
    """The model draws random numbers.

    What happened:
        The graph contains an operator such as `torch.randn` or `torch.multinomial`. ONNX has such operators, but the runtime's
        generator differs from PyTorch's.

    Why it matters:
        No seed makes ONNX Runtime draw the numbers that PyTorch draws. The outputs cannot be compared, so `verify` does not compare
        them.

    How to fix it:
        1. Draw the numbers outside the model and pass them to `forward`.
        2. If the numbers matter only in training, skip the line in evaluation: `if self.training:`.

    Example:
        ```python
        import torch

        import onnxplain


        class Noise(torch.nn.Module):
            def forward(self, x):
                return x + torch.randn_like(x)  # OXP1015


        program = onnxplain.export(Noise(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Noise(torch.nn.Module):
            def forward(self, x, noise):
                return x + noise


        program = onnxplain.export(Noise(), (torch.ones(3), torch.randn(3)))
        ```
    """

    operator: str

    message = "The operator '{operator}' draws random numbers; no seed makes them match PyTorch's."


class LoopUnrolled(Rule, id="OXP1016", level=Level.NOTE, history=[Added("0.1.0")]):
    """Capture unrolled a Python loop into many operators.

    What happened:
        Capture runs `forward` in Python, so each iteration of a loop adds its operators to the graph. This line added the same
        operator at least 100 times.

    Why it matters:
        The exported model is correct. But it is large, slow to export and to load, and its number of iterations is fixed.

    How to fix it:
        1. Replace the loop with one operator on a whole tensor: `cumsum`, `cumprod`, `matmul`, a convolution.
        2. If the number of iterations belongs to the model, ignore this finding.

    Example:
        ```python
        import torch

        import onnxplain


        class Decay(torch.nn.Module):
            def forward(self, x):
                for _ in range(100):
                    x = x * 0.99  # OXP1016
                return x


        program = onnxplain.export(Decay(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Decay(torch.nn.Module):
            def forward(self, x):
                return x * 0.99**100


        program = onnxplain.export(Decay(), (torch.ones(3),))
        ```
    """

    rounds: int

    message = "The line became '{rounds}' equal operators, because capture unrolls Python loops."
    volatile = ("rounds",)


class TensorRead(Rule, id="OXP1020", level=Level.NOTE, history=[Added("0.1.0")]):
    """Python read the data of a tensor in the model, and the exported model holds it as a constant.

    What happened:
        `float(t)`, `t.item()`, `t.tolist()` or `t.numpy()` made a Python value from a tensor. The tensor is not a parameter, buffer
        or input, but a plain attribute of a module.

    Why it matters:
        The graph has the number but no initializer. If you change the weights of the ONNX model later, the number stays.

    How to fix it:
        1. Compute with the tensor itself: `x * self.scale` instead of `x * float(self.scale)`.
        2. If the number never changes, store it as a Python float.

    Example:
        ```python
        import torch

        import onnxplain


        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.tensor(2.0)

            def forward(self, x):
                return x * float(self.scale)  # OXP1020


        program = onnxplain.export(Scaled(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.tensor(2.0)

            def forward(self, x):
                return x * self.scale


        program = onnxplain.export(Scaled(), (torch.ones(3),))
        ```
    """

    expression: str

    message = "The value of '{expression}' during capture is a constant of the exported model."
