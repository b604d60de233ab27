"""Chapter 6: verify, which runs the exported model in ONNX Runtime and compares it with eager PyTorch."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, MeaningChanged, Rule


class RuntimeRejected(Rule, id="OXP6001", level=Level.ERROR, history=[Added("0.1.0")]):
    """ONNX Runtime cannot load or run the exported model.

    What happened:
        The model is valid ONNX, but ONNX Runtime refuses to load it, or fails when it runs the example inputs. The finding points
        to the line of the model that the node comes from.

    Why it matters:
        The model does not run in ONNX Runtime on this machine. Another runtime or another execution provider may accept it.

    How to fix it:
        1. Write the line with other operators.
        2. If you wrote the translation, correct it.
        3. If the model is for another runtime, export without `verify=True`.

    Example:
        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        def translate_sin(self):
            return op.Gather(self, op.Constant(value_ints=[7, 8, 9]))


        class Sine(torch.nn.Module):
            def forward(self, x):
                return torch.sin(x)  # OXP6001


        table = {torch.ops.aten.sin.default: translate_sin}
        program = onnxplain.export(Sine(), (torch.ones(3),), custom_translation_table=table, verify=True)
        ```

        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        def translate_sin(self):
            return op.Sin(self)


        class Sine(torch.nn.Module):
            def forward(self, x):
                return torch.sin(x)


        table = {torch.ops.aten.sin.default: translate_sin}
        program = onnxplain.export(Sine(), (torch.ones(3),), custom_translation_table=table, verify=True)
        ```
    """

    error: str

    message = "ONNX Runtime rejects the model: '{error}'."


class OutputsDiffer(
    Rule,
    id="OXP6002",
    level=Level.ERROR,
    history=[
        Added("0.1.0"),
        MeaningChanged("0.2.0", "differences whose cause is known have rules of their own, from OXP6008 to OXP6013"),
    ],
):
    """An output of the exported model differs from that of eager PyTorch, and no operator is to blame.

    What happened:
        onnxplain ran the inputs in PyTorch and in ONNX Runtime. The results differ by more than rounding and the order of equal elements
        explain. Operator by operator, the exported model computes what was captured. So the model itself computes something different from
        what it computed during the capture, or small faults of several operators add up: then the finding points to the first operator
        whose result differs by more than the tolerance.

    Why it matters:
        The exported model computes something else.

    How to fix it:
        1. If the model asks for the phase, such as `torch.compiler.is_exporting()`, or for the time, make it compute the same each time.
        2. If the model draws random numbers, make it deterministic: `model.eval()`.
        3. If the finding names two dtypes, an operator of PyTorch returns another dtype than PyTorch says during a capture. Convert its
           operands to one dtype before it.
        4. Otherwise this is a bug of onnxplain: report it.

    Example:
        ```python
        import torch

        import onnxplain


        class Doubled(torch.nn.Module):
            def forward(self, x):
                if torch.compiler.is_exporting():  # OXP6002
                    return x * 2
                return x


        options = onnxplain.DiagnosticOptions(ignore=("OXP1021",))  # the question itself is told as well
        program = onnxplain.export(Doubled(), (torch.ones(3),), verify=True, diagnostic_options=options)
        ```

        ```python
        import torch

        import onnxplain


        class Doubled(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Doubled(), (torch.ones(3),), verify=True)
        ```
    """

    output: str
    difference: float
    tolerance: float

    message = "The output '{output}' differs from eager PyTorch by '{difference}', more than '{tolerance}'."
    volatile = ("output", "difference")


class EagerFailed(Rule, id="OXP6003", level=Level.ERROR, history=[Added("0.1.0")]):
    """PyTorch itself fails on the example inputs.

    What happened:
        onnxplain captured and built the model. To compare the results, it ran the model in PyTorch on the example inputs, and that
        raised an exception.

    Why it matters:
        There is nothing to compare with. And the example is not a valid use of the model: it violates a condition that capture
        relied on, such as the number of classes of `one_hot`.

    How to fix it:
        1. Call the model with these inputs without an export, and fix what fails.
        2. Use an example for which the model works.

    Example:
        ```python
        import torch

        import onnxplain


        class Kinds(torch.nn.Module):
            def forward(self, kinds):
                return torch.nn.functional.one_hot(kinds, 3)  # OXP6003


        program = onnxplain.export(Kinds(), (torch.tensor([0, 3]),), verify=True)
        ```

        ```python
        import torch

        import onnxplain


        class Kinds(torch.nn.Module):
            def forward(self, kinds):
                return torch.nn.functional.one_hot(kinds, 3)


        program = onnxplain.export(Kinds(), (torch.tensor([0, 2]),), verify=True)
        ```
    """

    error: str

    message = "PyTorch itself fails on the example inputs with '{error}'."


class KernelMissing(Rule, id="OXP6004", level=Level.WARNING, history=[Added("0.1.0")]):
    """ONNX Runtime has no kernel for an operator with these dtypes.

    What happened:
        The model is valid ONNX. But the CPU execution provider of the installed ONNX Runtime does not implement the operator for
        these dtypes, most often bfloat16. `verify` did not compare the results.

    Why it matters:
        The model runs only in runtimes with such a kernel.

    How to fix it:
        1. Export the model in float32, `model.float()`, and without `torch.autocast`.
        2. Cast around the line: `y = f(x.float()).to(x.dtype)`.
        3. If the model is for another runtime or another execution provider, ignore this finding.

    Example:
        ```python
        import torch

        import onnxplain


        class Product(torch.nn.Module):
            def forward(self, x, y):
                return torch.matmul(x, y)  # OXP6004


        args = (torch.ones(2, 3, dtype=torch.bfloat16), torch.ones(3, 2, dtype=torch.bfloat16))
        program = onnxplain.export(Product(), args, verify=True)
        ```

        ```python
        import torch

        import onnxplain


        class Product(torch.nn.Module):
            def forward(self, x, y):
                return torch.matmul(x, y)


        program = onnxplain.export(Product(), (torch.ones(2, 3), torch.ones(3, 2)), verify=True)
        ```
    """

    operator: str
    dtypes: tuple[str, ...]

    message = "ONNX Runtime has no CPU kernel for '{operator}' with '{dtypes}'."


class StateKept(Rule, id="OXP6015", level=Level.WARNING, history=[Added("0.2.0")]):
    """The model gives other outputs when it runs again with the same inputs.

    What happened:
        `verify=True` ran the model twice in PyTorch, with the same inputs and the same random numbers, and some outputs differ. So the
        model keeps something from one run to the next, for example in the data of a weight, in a buffer of another module, in an iterator
        or in a file, and no other finding tells where. The outputs of the exported model were compared with those of the first run.

    Why it matters:
        The exported model keeps nothing: every run gives the outputs of the first one.

    How to fix it:
        1. Take what the model keeps as an input, and return its new value as an output.
        2. If the model keeps nothing on purpose, look for what `forward` changes outside of its local variables.

    Example:
        ```python
        import torch

        import onnxplain


        class Counter(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.step = torch.nn.Parameter(torch.zeros(()))

            def forward(self, x):  # OXP6015
                y = x + self.step
                self.step.data.add_(1)
                return y


        program = onnxplain.export(Counter(), (torch.ones(3),), verify=True)
        ```

        ```python
        import torch

        import onnxplain


        class Counter(torch.nn.Module):
            def forward(self, x, step):
                return x + step, step + 1


        program = onnxplain.export(Counter(), (torch.ones(3), torch.zeros(())), verify=True)
        ```
    """

    outputs: tuple[str, ...]

    message = "The outputs '{outputs}' are others when the model runs again: it keeps state, and the exported model does not."


class RuntimeWarned(Rule, id="OXP6007", level=Level.NOTE, history=[Added("0.2.0")]):
    """ONNX Runtime warns of something in the exported model.

    What happened:
        `verify=True` loaded and ran the exported model in ONNX Runtime, which logged this warning. If the warning names a node, the finding
        points to the line of the model that the node comes from.

    Why it matters:
        The model runs, and its outputs were compared. But ONNX Runtime may log the warning in each run, and another version of it may
        refuse the model.

    How to fix it:
        1. If the line calls an operator with a translation in your `custom_translation_table`, correct the function: its result may have
           another shape than PyTorch's.
        2. Otherwise the exported model is unusual, and this may be a bug in a translation of onnxplain: report it.

    Example:
        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        class Sine(torch.nn.Module):
            def forward(self, x):
                return torch.sin(x)  # OXP6007


        def translate_sin(x):
            return op.Compress(op.Sin(x), op.Less(x, 0.0))


        table = {torch.ops.aten.sin.default: translate_sin}
        options = onnxplain.DiagnosticOptions(ignore=("OXP6008",))  # the outputs differ
        program = onnxplain.export(Sine(), (torch.ones(3),), custom_translation_table=table, verify=True, diagnostic_options=options)
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

    warning: str

    message = "ONNX Runtime warns: '{warning}'."
    volatile = ("warning",)
