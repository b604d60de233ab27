"""Chapter 6: verify, which runs the exported model in ONNX Runtime and compares it with eager PyTorch."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class EagerFailed(Rule, id="OXP6003", level=Level.ERROR, history=[Added("0.1.0")]):
    """PyTorch itself fails on the example inputs.

    What happened:
        The model was captured and built. To compare the results, PyTorch ran it eagerly on the example inputs, and that raised an
        exception.

    Why it matters:
        There is nothing to compare with, and the example is none of a use of the model: a condition that capture took for granted,
        such as a `torch._check`, does not hold for it.

    How to fix it:
        1. Call the model with these inputs, without an export, and mend what fails.
        2. Give an example for which the model works.

    Example:
        ```python
        import torch

        import onnxplain


        class Head(torch.nn.Module):
            def forward(self, x, count):
                n = count.item()
                torch._check(n >= 2)  # OXP6003
                torch._check(n <= x.shape[0])
                return x[:n] * 2


        program = onnxplain.export(Head(), (torch.ones(3), torch.tensor(1)), verify=True)
        ```

        ```python
        import torch

        import onnxplain


        class Head(torch.nn.Module):
            def forward(self, x, count):
                n = count.item()
                torch._check(n >= 2)
                torch._check(n <= x.shape[0])
                return x[:n] * 2


        program = onnxplain.export(Head(), (torch.ones(3), torch.tensor(2)), verify=True)
        ```
    """

    error: str

    message = "PyTorch itself fails on the example inputs with '{error}'."


class RuntimeRejected(Rule, id="OXP6001", level=Level.ERROR, history=[Added("0.1.0")]):
    """ONNX Runtime cannot load or run the exported model.

    What happened:
        The model is valid ONNX, but ONNX Runtime has no kernel for one of its operators with these dtypes, or cannot agree with
        its types and shapes. The finding stands at the line of the model that the node comes from.

    Why it matters:
        The model does not run in ONNX Runtime on this machine. Another runtime or another execution provider may take it.

    How to fix it:
        1. Use a dtype that the runtime has a kernel for, mostly float32: `model.float()`.
        2. Write the line with other operators.
        3. If the model is meant for another runtime, export without `verify=True`.

    Example:
        ```python
        import torch

        import onnxplain


        class Upsample(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = torch.nn.ConvTranspose1d(1, 1, 2)

            def forward(self, x):
                return self.conv(x)  # OXP6001


        program = onnxplain.export(Upsample().double(), (torch.ones(1, 1, 3).double(),), verify=True)
        ```

        ```python
        import torch

        import onnxplain


        class Upsample(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = torch.nn.ConvTranspose1d(1, 1, 2)

            def forward(self, x):
                return self.conv(x)


        program = onnxplain.export(Upsample(), (torch.ones(1, 1, 3),), verify=True)
        ```
    """

    error: str

    message = "ONNX Runtime rejects the model: '{error}'."


class OutputsDiffer(Rule, id="OXP6002", level=Level.ERROR, history=[Added("0.1.0")]):
    """An output of the exported model differs from that of eager PyTorch.

    What happened:
        The model was run with the example inputs, by PyTorch and by ONNX Runtime, and the results differ by more than rounding
        explains. The finding stands at the line of the first operator whose result differs, as far as it could be found.

    Why it matters:
        The exported model computes something else.

    How to fix it:
        1. If the operator's translation is from `custom_translation_table`, correct the function.
        2. If the model draws random numbers, make it deterministic: `model.eval()`.
        3. Otherwise it is a bug of the translation: report it, and go around it with a translation of your own.

    Example:
        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        class Sine(torch.nn.Module):
            def forward(self, x):
                return torch.sin(x)  # OXP6002


        def translate_sin(x):
            return op.Cos(x)


        table = {torch.ops.aten.sin.default: translate_sin}
        program = onnxplain.export(Sine(), (torch.ones(3),), custom_translation_table=table, verify=True)
        ```

        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        class Sine(torch.nn.Module):
            def forward(self, x):
                return torch.sin(x)


        def translate_sin(x):
            return op.Sin(x)


        table = {torch.ops.aten.sin.default: translate_sin}
        program = onnxplain.export(Sine(), (torch.ones(3),), custom_translation_table=table, verify=True)
        ```
    """

    output: str
    difference: float
    tolerance: float

    message = "The output '{output}' differs from eager PyTorch by '{difference}', more than '{tolerance}'."
