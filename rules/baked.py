"""Chapter 1, continued: what a capture fixes for good without a word of torch.export's."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class InputBaked(Rule, id="OXP1012", level=Level.WARNING, history=[Added("0.1.0")]):
    """A Python number or text among the inputs is a constant in the exported model.

    What happened:
        The example inputs hold a Python int, a float or text. A graph has tensors as inputs only, so the value took part in the
        capture and is fixed: branches that it decides are decided for good.

    Why it matters:
        The ONNX model has no such input. For another value it computes the same as for this one.

    How to fix it:
        1. Pass a number as a tensor, `torch.tensor(2)`, if it only takes part in arithmetic.
        2. Make an int a dynamic one: `Dim.DYNAMIC` for it in `dynamic_shapes`.
        3. If one value is all that is needed, give it to the model's constructor: then nobody expects an input.

    Example:
        ```python
        import torch

        import onnxplain


        class Scale(torch.nn.Module):
            def forward(self, x, factor):
                return x * factor  # OXP1012


        program = onnxplain.export(Scale(), (torch.ones(3), 2))
        ```

        ```python
        import torch

        import onnxplain


        class Scale(torch.nn.Module):
            def forward(self, x, factor):
                return x * factor


        program = onnxplain.export(Scale(), (torch.ones(3), torch.tensor(2)))
        ```
    """

    name: str
    value: str

    message = "The input '{name}' is the constant '{value}' in the exported model."
    volatile = ("value",)


class InputLeftOut(Rule, id="OXP1013", level=Level.NOTE, history=[Added("0.1.0")]):
    """An input that is None, True or False in the example is no input of the exported model.

    What happened:
        The example inputs hold None or a flag. `forward` ran with it, and the graph has no input for it.

    Why it matters:
        The exported model does what `forward` does with that value, and cannot do the other thing.

    How to fix it:
        1. Leave the argument out, if it is never passed.
        2. Always pass a tensor, a mask of ones, say.
        3. Export one model for each way to call it.

    Example:
        ```python
        import torch

        import onnxplain


        class Masked(torch.nn.Module):
            def forward(self, x, mask=None):
                return x if mask is None else x * mask  # OXP1013


        program = onnxplain.export(Masked(), (torch.ones(3), None))
        ```

        ```python
        import torch

        import onnxplain


        class Masked(torch.nn.Module):
            def forward(self, x, mask=None):
                return x if mask is None else x * mask


        program = onnxplain.export(Masked(), (torch.ones(3), torch.ones(3)))
        ```
    """

    name: str

    value: str

    message = "The input '{name}' is always '{value}' in the exported model, which has no such input."
    volatile = ("value",)


class HostValueBaked(Rule, id="OXP1014", level=Level.WARNING, history=[Added("0.1.0")]):
    """Python or numpy drew a random number, or read a clock, while the model was captured.

    What happened:
        `forward` calls a function of Python's or numpy's whose result is another one each time: `random.random()`, `time.time()`. Capture
        runs `forward` once, and the number that came then is a constant of the graph.

    Why it matters:
        Every run of the exported model computes with the number of that one run.

    How to fix it:
        1. Draw the number with torch, `torch.rand(())`: then it is an operator of the graph.
        2. Make it an input of `forward`; the caller draws it.
        3. If the model should not be random when it is used, skip the line in evaluation: `if self.training:`.

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

    message = "What '{generator}' gave during capture is a constant of the exported model."


class RandomOperator(Rule, id="OXP1015", level=Level.WARNING, history=[Added("0.1.0")]):
    """The model draws random numbers.

    What happened:
        An operator such as `torch.randn` or `torch.multinomial` is part of the graph. ONNX has operators for that, but their generator is
        the runtime's.

    Why it matters:
        No seed gives the same numbers in ONNX Runtime as in PyTorch, so the outputs cannot be compared, and `verify` does not.

    How to fix it:
        1. Draw the numbers outside and pass them to `forward`.
        2. If the model should not be random when it is used, skip the line in evaluation: `if self.training:`.

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

    message = "The operator '{operator}' draws random numbers, other ones than PyTorch for any seed."


class LoopUnrolled(Rule, id="OXP1016", level=Level.NOTE, history=[Added("0.1.0")]):
    """A Python loop with many rounds became as many operators.

    What happened:
        Capture runs `forward` in Python, so each round of a loop adds its operators to the graph. This line added the same one over a
        hundred times.

    Why it matters:
        The model is right. But it is large, slow to export and to load, and the number of rounds is fixed.

    How to fix it:
        1. Write the rounds as one operator on a whole tensor: `cumsum`, `cumprod`, `matmul`, a convolution.
        2. Leave it, if the number of rounds is part of the model.

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

    message = "The line became '{rounds}' equal operators: a Python loop is unrolled."
    volatile = ("rounds",)


class SymbolicIgnored(Rule, id="OXP1017", level=Level.WARNING, history=[Added("0.1.0")]):
    """The `symbolic` of a torch.autograd.Function has no effect.

    What happened:
        The function has a static method `symbolic`, which told torch.onnx's TorchScript exporter which ONNX operators to write.
        torch.export traces through `forward` of the function, so the graph has the operators that it calls.

    Why it matters:
        The exported model computes the same, but without the operators that `symbolic` meant: a custom operator of a runtime, say.

    How to fix it:
        1. Define an operator with `torch.library.custom_op`, call that, and pass its translation in `custom_translation_table`.
        2. If the operators of `forward` are fine, remove `symbolic`.

    Example:
        ```python
        import torch

        import onnxplain


        class Clip(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clamp(0, 1)

            @staticmethod
            def symbolic(g, x):
                return g.op("my.domain::Clip", x)


        class Net(torch.nn.Module):
            def forward(self, x):
                return Clip.apply(x) * 2  # OXP1017


        program = onnxplain.export(Net(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Clip(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clamp(0, 1)


        class Net(torch.nn.Module):
            def forward(self, x):
                return Clip.apply(x) * 2


        program = onnxplain.export(Net(), (torch.ones(3),))
        ```
    """

    function: str

    message = "The symbolic of '{function}' has no effect: the operators of its forward are exported."
