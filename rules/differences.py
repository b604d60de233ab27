"""Chapter 6, verify: what makes the numbers of an exported model differ from those of eager PyTorch."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class TranslationWrong(Rule, id="OXP6008", level=Level.ERROR, history=[Added("0.2.0")]):
    """The translation of an operator computes something different from PyTorch.

    What happened:
        onnxplain ran the exported model part by part beside PyTorch, and compared the values behind each operator. This is the first
        operator whose result differs from what PyTorch computes for the same inputs. ONNX Runtime does what the ONNX operators say: with
        graph optimizations, without them, and in ONNX's reference evaluator. So the translation itself is wrong. The message tells how
        far the operator's inputs already differed, and its result.

    Why it matters:
        The exported model computes something else.

    How to fix it:
        1. If the operator's translation is in your `custom_translation_table`, correct the function. The notes of the finding contain a
           script that computes this operator alone.
        2. Otherwise this is a bug in a translation of onnxplain: report it with that script, and work around it with your own translation.

    Example:
        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        class Sine(torch.nn.Module):
            def forward(self, x):
                return torch.sin(x)  # OXP6008


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

    operator: str
    outputs: tuple[str, ...]
    before: float
    difference: float
    tolerance: float

    message = (
        "The translation of '{operator}' makes '{outputs}' wrong: its result differs from eager PyTorch by '{difference}', "
        "more than '{tolerance}', and its inputs by '{before}'."
    )
    volatile = ("outputs", "before", "difference")


class PromotionWrong(Rule, id="OXP6009", level=Level.ERROR, history=[Added("0.2.0")]):
    """The translation of an operator computes in another dtype than PyTorch.

    What happened:
        This is the first operator whose result differs from what PyTorch computes for the same inputs. In float64, the same ONNX operators
        give PyTorch's result, so the formula is right. But they compute in a dtype that is too small or too coarse, while PyTorch promotes
        the inputs to another dtype first, or the result has another dtype than PyTorch's.

    Why it matters:
        The exported model loses digits, overflows, or cuts fractions off.

    How to fix it:
        1. If the operator's translation is in your `custom_translation_table`, cast the inputs to PyTorch's dtype before the computation:
           `op.Cast(x, to=...)`. The notes of the finding contain a script that computes this operator alone.
        2. Otherwise this is a bug in a translation of onnxplain: report it with that script, and work around it with your own translation.

    Example:
        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        class Distance(torch.nn.Module):
            def forward(self, x):
                return torch.abs(x)  # OXP6009


        def translate_abs(x):
            return op.Cast(op.Abs(op.Cast(x, to=6)), to=1)  # in int32


        table = {torch.ops.aten.abs.default: translate_abs}
        program = onnxplain.export(Distance(), (torch.linspace(-2, 2, 6),), custom_translation_table=table, verify=True)
        ```

        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        class Distance(torch.nn.Module):
            def forward(self, x):
                return torch.abs(x)


        def translate_abs(x):
            return op.Abs(x)


        table = {torch.ops.aten.abs.default: translate_abs}
        program = onnxplain.export(Distance(), (torch.linspace(-2, 2, 6),), custom_translation_table=table, verify=True)
        ```
    """

    operator: str
    dtype: str
    outputs: tuple[str, ...]
    before: float
    difference: float
    tolerance: float

    message = (
        "The translation of '{operator}' computes in '{dtype}', which makes '{outputs}' wrong: its result differs from eager PyTorch by "
        "'{difference}', more than '{tolerance}', and its inputs by '{before}'."
    )
    volatile = ("outputs", "before", "difference")


class HalfOverflowed(Rule, id="OXP6010", level=Level.ERROR, history=[Added("0.2.0")]):
    """A float16 overflows, in PyTorch or in the exported model.

    What happened:
        A value is larger than 65,504, the largest number of float16, and becomes infinite. Only one side has it: ONNX Runtime computes
        some operators in float32, although the model says float16, and PyTorch adds up in float32 where ONNX operators may not. The finding
        points to the operator that overflows.

    Why it matters:
        One of the two computes infinities or NaN, and every further result that depends on them is useless. Which one does so depends on
        the runtime: another one may overflow where ONNX Runtime does not.

    How to fix it:
        1. Scale before you multiply, such as `(x / 1000) * x` instead of `(x * x) / 1000`.
        2. Compute the line in float32: `(x.float() ** 2).mean().to(x.dtype)`.
        3. Export the model in float32 or bfloat16.

    Example:
        ```python
        import torch

        import onnxplain


        class Power(torch.nn.Module):
            def forward(self, x):
                return (x * x) / 1000  # OXP6010


        program = onnxplain.export(Power(), (torch.full((3,), 300.0, dtype=torch.float16),), verify=True)
        ```

        ```python
        import torch

        import onnxplain


        class Power(torch.nn.Module):
            def forward(self, x):
                return (x / 1000) * x


        program = onnxplain.export(Power(), (torch.full((3,), 300.0, dtype=torch.float16),), verify=True)
        ```
    """

    operator: str
    outputs: tuple[str, ...]
    side: str

    message = "'{operator}' overflows float16 in '{side}' only, which makes '{outputs}' differ from eager PyTorch."
    volatile = ("outputs",)


class KernelDiffers(Rule, id="OXP6011", level=Level.ERROR, history=[Added("0.2.0")]):
    """A kernel of ONNX Runtime computes something different from the ONNX standard.

    What happened:
        This is the first operator whose result differs from what PyTorch computes for the same inputs. ONNX's reference evaluator gives
        PyTorch's result for the same ONNX operators. ONNX Runtime gives another one, with its graph optimizations and without them.

    Why it matters:
        The exported model is right, and this version of ONNX Runtime computes something else with it. Another runtime may be right.

    How to fix it:
        1. Try another version of ONNX Runtime or another execution provider.
        2. Write the line with other operators, or give the operator another translation with `custom_translation_table`.
        3. Report it to ONNX Runtime: the notes of the finding contain a script that needs only these ONNX operators.

    Example:
        ```python
        import torch

        import onnxplain


        class Pool(torch.nn.Module):
            # ONNX Runtime ignores what is not a number.
            def forward(self, x):
                return torch.nn.functional.max_pool1d(x, 2)  # OXP6011


        program = onnxplain.export(Pool(), (torch.tensor([[[float("nan"), 1.0, 2.0, 3.0]]]),), verify=True)
        ```

        ```python
        import torch

        import onnxplain


        class Pool(torch.nn.Module):
            def forward(self, x):
                return torch.nn.functional.max_pool1d(x, 2)


        program = onnxplain.export(Pool(), (torch.tensor([[[0.0, 1.0, 2.0, 3.0]]]),), verify=True)
        ```
    """

    nodes: tuple[str, ...]
    operator: str
    outputs: tuple[str, ...]
    before: float
    difference: float
    tolerance: float

    message = (
        "ONNX Runtime's kernel of '{nodes}', for '{operator}', makes '{outputs}' wrong: its result differs from eager PyTorch by "
        "'{difference}', more than '{tolerance}', and its inputs by '{before}'."
    )
    volatile = ("outputs", "before", "difference")


class OptimizationDiffers(Rule, id="OXP6012", level=Level.ERROR, history=[Added("0.2.0")]):
    """A graph optimization of ONNX Runtime changes the result.

    What happened:
        The outputs differ from those of eager PyTorch. With its graph optimizations disabled, ONNX Runtime gives PyTorch's result. The
        finding names the ONNX operators that an optimization merges or replaces, and points to the line that they come from.

    Why it matters:
        The exported model is right, and this version of ONNX Runtime computes something else with it, unless its optimizations are off.

    How to fix it:
        1. Run the model with fewer optimizations: `SessionOptions.graph_optimization_level`.
        2. Try another version of ONNX Runtime.
        3. Report it to ONNX Runtime with the part of the model that the finding names.

    Example:
        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        class Pool(torch.nn.Module):
            def forward(self, x):
                return torch.max_pool1d(torch.nn.functional.pad(x, (1, 1)), 2)  # OXP6012


        def translate_pool(x, kernel, *_):
            largest, _ = op.MaxPool(x, kernel_shape=kernel, strides=kernel)
            return largest  # ONNX Runtime leaves the zeros out that the line pads with


        table = {torch.ops.aten.max_pool1d.default: translate_pool}
        program = onnxplain.export(Pool(), (-torch.ones(1, 1, 4),), custom_translation_table=table, verify=True)
        ```

        ```python
        import torch

        import onnxplain


        class Pool(torch.nn.Module):
            def forward(self, x):
                return torch.max_pool1d(torch.nn.functional.pad(x, (1, 1)), 2)


        program = onnxplain.export(Pool(), (-torch.ones(1, 1, 4),), verify=True)
        ```
    """

    nodes: tuple[str, ...]
    outputs: tuple[str, ...]
    difference: float
    tolerance: float

    message = (
        "ONNX Runtime's optimization of '{nodes}' makes '{outputs}' wrong: they differ from eager PyTorch by '{difference}', "
        "more than '{tolerance}'."
    )
    volatile = ("outputs", "difference")


class DiffersByRounding(Rule, id="OXP6013", level=Level.NOTE, history=[Added("0.2.0")]):
    """Outputs differ from eager PyTorch by more than the tolerance, but only by rounding.

    What happened:
        ONNX Runtime and PyTorch add and multiply in a different order, and round differently. Recomputed in float64, the outputs are about
        as far from those of ONNX Runtime as from those of eager PyTorch, or no operator rounds more than sums of numbers of that size do.
        Neither is more accurate than the other. The finding points to the first operator whose result differs by more than the tolerance.

    Why it matters:
        The exported model is right. But your model magnifies rounding, or its numbers are large: they will differ between machines, batch
        sizes and versions of PyTorch as well.

    How to fix it:
        1. If this is unwanted, compute the line in float64, or avoid the difference of two large numbers that are nearly equal.
        2. Otherwise there is nothing to fix.

    Example:
        ```python
        import torch

        import onnxplain


        class Rest(torch.nn.Module):
            def forward(self, x):
                return (x.cumsum(0) * 1e7).sin()  # OXP6013


        program = onnxplain.export(Rest(), (torch.arange(64) / 100 + 0.01,), verify=True)
        ```

        ```python
        import torch

        import onnxplain


        class Rest(torch.nn.Module):
            def forward(self, x):
                return x.cumsum(0).sin()


        program = onnxplain.export(Rest(), (torch.arange(64) / 100 + 0.01,), verify=True)
        ```
    """

    outputs: tuple[str, ...]
    difference: float
    tolerance: float

    message = "The outputs '{outputs}' differ from eager PyTorch by '{difference}', more than '{tolerance}', but only by rounding."
    volatile = ("outputs", "difference")
