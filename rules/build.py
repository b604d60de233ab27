"""Chapter 4: build, which writes the ONNX graph."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class NameChanged(Rule, id="OXP4001", level=Level.WARNING, history=[Added("0.1.0")]):
    """A value of the ONNX model has another name than you asked for.

    What happened:
        Every value in an ONNX graph has a unique name. Another value already has the name that you asked for, or that a weight has in
        the state dict. Inputs and outputs come first. Or you named a dim whose size always follows from that of another dim: the model
        then has the other name, or an expression such as `n + 1`. Or a name of a dim is no identifier, such as `past + n`, which would
        look like such an expression.

    Why it matters:
        A program that feeds or reads the value by the name you asked for fails. A state dict no longer fits the names of the weights.

    How to fix it:
        1. Use different names throughout `input_names` and `output_names`, and none that a weight has.
        2. Use one name for dims of one size, a Dim such as `n + 1` for a size that follows from `n`, and identifiers for other dims.
        3. Use the new name in your program.

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
    """No operator uses an input of the model.

    What happened:
        `forward` has the parameter, but for these arguments none of its results depends on its data. `forward` may read its shape.
        The exported model keeps the input, so that its inputs match those of `forward`.

    Why it matters:
        Every run must feed a value that changes nothing. Often `forward` did not take a branch that it should have taken.

    How to fix it:
        1. Leave the input out of the example inputs, or pass `None` for it, unless `forward` reads its shape.
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

    message = "The input '{name}' is unused, but the exported model keeps it."


class NameUnused(Rule, id="OXP4003", level=Level.WARNING, history=[Added("0.1.0")]):
    """You gave more names than the graph has inputs or outputs.

    What happened:
        `input_names` or `output_names` is longer than the list of the graph's inputs or outputs. A Python number or string among
        the inputs does not count: it is a constant of the graph.

    Why it matters:
        A program that feeds or reads a value by that name fails.

    How to fix it:
        1. Remove the name.
        2. If the name is for a Python number, pass the number as a tensor, which makes it an input.

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

    message = "There is no '{kind}' for the name '{name}': the graph has '{count}'."
    volatile = ("count",)


class ConstantOutput(Rule, id="OXP4004", level=Level.NOTE, history=[Added("0.1.0")]):
    """An output of the model does not depend on the inputs.

    What happened:
        `forward` returns a weight, or a value that it computes from constants only.

    Why it matters:
        Every run returns the same value. If you do not want that, a value that should depend on the inputs became a constant on the
        way: through `.item()`, through numpy, or through a size that is not dynamic.

    How to fix it:
        1. Do not return the value; your program can compute it once.
        2. If it should depend on an input, trace it back to the line where it stops being a tensor computed from that input.

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
    """A result of `forward` is not an output of the exported model.

    What happened:
        `forward` returns None or a string among its results. The outputs of an ONNX model are tensors.

    Why it matters:
        Later outputs shift: their positions differ from those in `forward`. If no output is left, the export fails, because no runtime
        loads a model without outputs.

    How to fix it:
        Return tensors only. A `forward` without a `return` returns None.

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

    message = "The results '{values}' of forward are not outputs of the exported model."


class NanWeight(Rule, id="OXP4006", level=Level.NOTE, history=[Added("0.1.0")]):
    """A weight or a constant of the model contains NaN.

    What happened:
        A parameter, a buffer or another tensor of the model contains NaN (not a number), and so does the exported model.

    Why it matters:
        Computing with NaN gives NaN. A model whose training failed exports and runs without an error, and returns only NaN.

    How to fix it:
        1. If the weights come from training, find the checkpoint before the loss became NaN.
        2. If your model uses NaN as a marker, ignore this finding, or mark with a tensor of bools.

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

    message = "The weight '{name}' contains NaN."
    volatile = ("name",)


class ComplexAsReal(Rule, id="OXP4007", level=Level.NOTE, history=[Added("0.1.0")]):
    """A complex input or output is a real tensor with one more dim in the exported model.

    What happened:
        `forward` takes or returns a complex tensor. ONNX has no operators for complex numbers. The exported model stores the real
        and the imaginary part in a last dim of size 2, as `torch.view_as_real` does.

    Why it matters:
        Callers must pass and read tensors in this layout.

    How to fix it:
        1. Convert outside the model: `torch.view_as_real(x)` before a call, `torch.view_as_complex(y)` after it.
        2. Let `forward` take and return real tensors, so that its signature matches the exported model.

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

    message = "The complex '{kind}' '{name}' is a real tensor with a last dim of size 2 in the exported model."
    volatile = ("name",)
