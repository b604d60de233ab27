"""Chapter 4: build, which writes the ONNX graph."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class NameChanged(Rule, id="OXP4001", level=Level.WARNING, history=[Added("0.1.0")]):
    """A name that was asked for is another one in the ONNX model.

    What happened:
        In an ONNX graph every value has a name of its own. The name that was asked for is taken by another value.

    Why it matters:
        A program that feeds or reads the value by the name asked for fails.

    How to fix it:
        1. Ask for names that differ from each other, in `input_names` and `output_names` together.
        2. Use the name that was given.

    Example:
        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3),), input_names=["x"], output_names=["x"])  # OXP4001
        ```

        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3),), input_names=["x"], output_names=["y"])
        ```
    """

    kind: str
    asked: str
    given: str

    message = "The '{kind}' name '{asked}' was changed to '{given}'."
    volatile = ("given",)


class UnusedInput(Rule, id="OXP4002", level=Level.WARNING, history=[Added("0.1.0")]):
    """An input of the model is used by none of its operators.

    What happened:
        `forward` has the parameter, but nothing that it returns depends on it for these arguments. The ONNX model keeps the
        input, so that its inputs are those of `forward`.

    Why it matters:
        Every run must feed a value that changes nothing. Often it means that a branch of `forward` was not taken that should have
        been.

    How to fix it:
        1. Leave the input out of the example inputs, or pass `None` for it.
        2. Remove the parameter from `forward`.
        3. If the input should matter, look for the branch in `forward` that skips it.

    Example:
        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x, mask):  # OXP4002
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3), torch.ones(3)))
        ```

        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3),))
        ```
    """

    name: str

    message = "The input '{name}' is kept, but the model does not use it."


class NameUnused(Rule, id="OXP4003", level=Level.WARNING, history=[Added("0.1.0")]):
    """There are more names for inputs or outputs than inputs or outputs.

    What happened:
        `input_names` or `output_names` is longer than the list of the graph's inputs or outputs. A Python number or string among the
        inputs is no input of the graph: it became a constant.

    Why it matters:
        A program that feeds or reads a value by that name fails.

    How to fix it:
        1. Remove the name.
        2. If it was meant for a Python number, make that a tensor: then it is an input.

    Example:
        ```python
        import torch

        import onnxplain


        class Scale(torch.nn.Module):
            def forward(self, x):
                return x * 2.0


        program = onnxplain.export(Scale(), (torch.ones(3),), input_names=["x", "factor"])  # OXP4003
        ```

        ```python
        import torch

        import onnxplain


        class Scale(torch.nn.Module):
            def forward(self, x, factor):
                return x * factor


        program = onnxplain.export(Scale(), (torch.ones(3), torch.tensor(2.0)), input_names=["x", "factor"])
        ```
    """

    kind: str
    name: str
    count: int

    message = "The name '{name}' is one too many: the graph has '{count}' values of the kind '{kind}'."
    volatile = ("count",)


class ConstantOutput(Rule, id="OXP4004", level=Level.NOTE, history=[Added("0.1.0")]):
    """An output of the model does not depend on its inputs.

    What happened:
        What `forward` returns there is a weight, or is computed from constants only.

    Why it matters:
        Every run returns the same. Where that is not meant, a value that should depend on the inputs became a constant on the way, by
        `.item()`, by numpy, or by a size that is not dynamic.

    How to fix it:
        1. Do not return it; the caller can compute it once.
        2. If it should depend on an input, follow the line back to where it stops being a tensor made of that input.

    Example:
        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2, torch.ones(2) * 3  # OXP4004


        program = onnxplain.export(Double(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3),))
        ```
    """

    name: str

    message = "The output '{name}' is the same for all inputs."
    volatile = ("name",)


class OutputLeftOut(Rule, id="OXP4005", level=Level.NOTE, history=[Added("0.1.0")]):
    """A value that forward returns is no output of the exported model.

    What happened:
        `forward` returns None or text among its results. The outputs of an ONNX model are tensors.

    Why it matters:
        The outputs that follow it have other positions than the results of `forward`.

    How to fix it:
        Return tensors only.

    Example:
        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2, None  # OXP4005


        program = onnxplain.export(Double(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3),))
        ```
    """

    values: tuple[str, ...]

    message = "The results '{values}' of forward are no outputs of the exported model."


class NanWeight(Rule, id="OXP4006", level=Level.NOTE, history=[Added("0.1.0")]):
    """A weight or a constant of the model holds NaN.

    What happened:
        A parameter, a buffer or a tensor that the model holds has elements that are not a number. They are in the exported model, too.

    Why it matters:
        What is computed from NaN is NaN. A model whose training went wrong exports and runs without an error, and gives nothing but NaN.

    How to fix it:
        1. If the weights come from training, find the checkpoint before the loss became NaN.
        2. If NaN is a mark of the model's own, leave it; or mark with a tensor of bools.

    Example:
        ```python
        import torch

        import onnxplain


        class Filled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("known", torch.tensor([1.0, float("nan"), 3.0]))

            def forward(self, x):
                return torch.where(self.known.isnan(), x, self.known)  # OXP4006


        program = onnxplain.export(Filled(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Filled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("known", torch.tensor([1.0, 0.0, 3.0]))
                self.register_buffer("missing", torch.tensor([False, True, False]))

            def forward(self, x):
                return torch.where(self.missing, x, self.known)


        program = onnxplain.export(Filled(), (torch.ones(3),))
        ```
    """

    name: str

    message = "The weight '{name}' holds NaN."
    volatile = ("name",)


class ComplexAsReal(Rule, id="OXP4007", level=Level.NOTE, history=[Added("0.1.0")]):
    """A complex input or output is a real one with one more dim in the exported model.

    What happened:
        `forward` takes or returns a complex tensor. ONNX has no operators for complex numbers, so the exported model has the real and the
        imaginary part side by side, in a last dim of size 2, as `torch.view_as_real` puts them.

    Why it matters:
        Who calls the ONNX model has to pass and to read them so.

    How to fix it:
        1. Convert at the border: `torch.view_as_real(x)` before, `torch.view_as_complex(y)` behind.
        2. Let `forward` take and return real tensors: then the signature says what the exported model has.

    Example:
        ```python
        import torch

        import onnxplain


        class Shift(torch.nn.Module):
            def forward(self, x):
                return torch.complex(x, x)  # OXP4007


        program = onnxplain.export(Shift(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Shift(torch.nn.Module):
            def forward(self, x):
                return torch.view_as_real(torch.complex(x, x))


        program = onnxplain.export(Shift(), (torch.ones(3),))
        ```
    """

    kind: str
    name: str

    message = "The complex '{kind}' '{name}' is a real one with a last dim of size 2 in the exported model."
    volatile = ("name",)
