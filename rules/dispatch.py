"""Chapter 3: dispatch, which finds a translation for every operator of the graph."""

from __future__ import annotations

from onnxplain.diagnostics import Added, ArgumentsChanged, Level, Rule


class UnsupportedOperator(
    Rule,
    id="OXP3001",
    level=Level.ERROR,
    history=[Added("0.1.0"), ArgumentsChanged("0.2.0", before=("operator", "nearest"), after=("operator",))],
):
    """An operator has no translation to ONNX.

    What happened:
        onnxplain, onnxscript's torchlib and your `custom_translation_table` have no translation for the operator. PyTorch has no
        decomposition of it into operators with a translation.

    Why it matters:
        One such operator prevents the export of the whole model. One run lists all of them.

    How to fix it:
        1. Write the line with other operators.
        2. Translate the operator to ONNX operators: `custom_translation_table={torch.ops.namespace.name.overload: function}`.
        3. If your runtime has an operator for it, translate to that operator: write a function with an operator of the runtime's
           domain.

    Example:
        ```python
        import torch

        import onnxplain


        @torch.library.custom_op("demo::double", mutates_args=())
        def double(x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(x.numpy() * 2)  # onnxplain cannot export numpy instead


        @double.register_fake
        def _(x):
            return torch.empty_like(x)


        class Double(torch.nn.Module):
            def forward(self, x):
                return double(x)  # OXP3001


        program = onnxplain.export(Double(), (torch.ones(3),))
        ```

        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        @torch.library.custom_op("demo::double", mutates_args=())
        def double(x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(x.numpy() * 2)  # onnxplain cannot export numpy instead


        @double.register_fake
        def _(x):
            return torch.empty_like(x)


        class Double(torch.nn.Module):
            def forward(self, x):
                return double(x)


        def translate_double(x):
            return op.Add(x, x)


        table = {torch.ops.demo.double.default: translate_double}
        program = onnxplain.export(Double(), (torch.ones(3),), custom_translation_table=table)
        ```
    """

    operator: str

    message = "The operator '{operator}' has no translation to ONNX."
    everywhere = True


class UnsupportedOverload(Rule, id="OXP3002", level=Level.ERROR, history=[Added("0.1.0")]):
    """An operator has translations to ONNX, but none for this overload, dtype or argument.

    What happened:
        onnxplain can translate the operator, but not in this form. The finding names the overload, the dtype or the value of an
        argument that has no translation, and those that have one.

    Why it matters:
        Each form computes something different. The translation of another form would be silently wrong.

    How to fix it:
        1. Use a supported form; for a complex dtype, compute with the real and the imaginary part.
        2. Translate this form: `custom_translation_table={torch.ops.aten.name.overload: function}`.

    Example:
        ```python
        import torch

        import onnxplain


        class Running(torch.nn.Module):
            def forward(self, x, y):
                z = torch.complex(x, y)
                z = torch.logcumsumexp(z, dim=0)  # OXP3002
                return torch.view_as_real(z)


        program = onnxplain.export(Running(), (torch.ones(3), torch.ones(3)))
        ```

        ```python
        import torch

        import onnxplain


        class Running(torch.nn.Module):
            def forward(self, x, y):
                z = torch.complex(x, y)
                z = torch.log(torch.cumsum(torch.exp(z), dim=0))
                return torch.view_as_real(z)


        program = onnxplain.export(Running(), (torch.ones(3), torch.ones(3)))
        ```
    """

    operator: str
    problem: str
    supported: tuple[str, ...]

    message = "The operator '{operator}' has no translation for '{problem}'; supported: '{supported}'."
    everywhere = True
    volatile = ("supported",)


class OperatorNeedsNewerOpset(Rule, id="OXP3003", level=Level.ERROR, history=[Added("0.1.0")]):
    """An operator needs a newer ONNX opset than the one you asked for.

    What happened:
        In the opset that `opset_version` asks for, ONNX has no operator for this, or only one that lacks a feature.

    Why it matters:
        An ONNX file has one opset version for all its operators, and runtimes interpret the operators by it.

    How to fix it:
        1. Ask for the opset that the finding names, or leave `opset_version` out.
        2. If your runtime cannot read that opset, write the line with other operators.

    Example:
        ```python
        import torch

        import onnxplain


        class Mask(torch.nn.Module):
            def forward(self, flags, wanted):
                return torch.bitwise_and(flags, wanted)


        program = onnxplain.export(Mask(), (torch.tensor([5, 6]), torch.tensor([4, 4])), opset_version=17)  # OXP3003
        ```

        ```python
        import torch

        import onnxplain


        class Mask(torch.nn.Module):
            def forward(self, flags, wanted):
                return torch.bitwise_and(flags, wanted)


        program = onnxplain.export(Mask(), (torch.tensor([5, 6]), torch.tensor([4, 4])), opset_version=18)
        ```
    """

    operator: str
    needed: int
    asked: int

    message = "The operator '{operator}' needs ONNX opset '{needed}' or newer, but you asked for opset '{asked}'."
    everywhere = True


class TranslationFailed(Rule, id="OXP3004", level=Level.ERROR, history=[Added("0.1.0")]):
    """The translation of an operator raised an exception, or its results do not match the operator's.

    What happened:
        The operator has a translation. But for this node the translation raised an exception, or it returned too many values, too
        few values, or something that is not an ONNX value. The finding points to the line of your translation, or else to the line
        of the model. It holds the exception as its cause.

    Why it matters:
        ONNX cannot express this part of the model without a translation.

    How to fix it:
        1. If the translation is in your `custom_translation_table`, fix the function: its parameters are those of the ATen schema,
           and it returns ONNX values.
        2. Otherwise pass a working translation, `custom_translation_table={torch.ops.aten.name.overload: function}`, and report the
           failure of the built-in one.

    Example:
        ```python
        import torch

        import onnxplain


        class Sine(torch.nn.Module):
            def forward(self, x):
                return torch.sin(x)


        def translate_sin(x):
            raise NotImplementedError("a translation to be written")  # OXP3004


        table = {torch.ops.aten.sin.default: translate_sin}
        program = onnxplain.export(Sine(), (torch.ones(3),), custom_translation_table=table)
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
        program = onnxplain.export(Sine(), (torch.ones(3),), custom_translation_table=table)
        ```
    """

    operator: str
    function: str
    error: str

    message = "The translation '{function}' of the operator '{operator}' failed: '{error}'."
