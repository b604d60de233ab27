"""Chapter 3: dispatch, which finds a translation for every operator of the graph."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class UnsupportedOperator(Rule, id="OXP3001", level=Level.ERROR, history=[Added("0.1.0")]):
    """An operator of the model has no translation to ONNX.

    What happened:
        Neither onnxplain nor onnxscript's torchlib nor `custom_translation_table` has a translation for the operator, and PyTorch
        has no decomposition of it into operators that have one.

    Why it matters:
        One such operator keeps the whole model from being exported. All of them are listed in one run.

    How to fix it:
        1. Write the line with other operators.
        2. Translate the operator with ONNX operators: `custom_translation_table={torch.ops.namespace.name.overload: function}`.
        3. If the runtime has an operator for it, translate to that one: a function with an op of the runtime's own domain.

    Example:
        ```python
        import torch

        import onnxplain


        @torch.library.custom_op("demo::double", mutates_args=())
        def double(x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(x.numpy() * 2)  # numpy cannot be exported in its place


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
            return torch.from_numpy(x.numpy() * 2)  # numpy cannot be exported in its place


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
    nearest: str

    message = "The operator '{operator}' has no translation to ONNX (the nearest name that has one: '{nearest}')."
    everywhere = True
    volatile = ("nearest",)


class UnsupportedOverload(Rule, id="OXP3002", level=Level.ERROR, history=[Added("0.1.0")]):
    """An operator has translations to ONNX, but none for this overload, dtype or argument.

    What happened:
        The operator is known, but not in this form: the finding names the overload, the dtype or the value of an argument for
        which there is no translation, and those for which there is one.

    Why it matters:
        Each form computes something else. Taking a translation of another form would give wrong results without a sign of it.

    How to fix it:
        1. Use one of the supported forms; for a complex dtype, compute with the real and the imaginary part.
        2. Translate this form: `custom_translation_table={torch.ops.aten.name.overload: function}`.

    Example:
        ```python
        import torch

        import onnxplain


        class Product(torch.nn.Module):
            def forward(self, x, y):
                z = torch.complex(x, y)
                z = torch.prod(z, dim=0)  # OXP3002
                return torch.view_as_real(z)


        program = onnxplain.export(Product(), (torch.ones(3), torch.ones(3)))
        ```

        ```python
        import torch

        import onnxplain


        class Product(torch.nn.Module):
            def forward(self, x, y):
                size = torch.prod(torch.hypot(x, y), dim=0)
                angle = torch.sum(torch.atan2(y, x), dim=0)
                return torch.stack((size * torch.cos(angle), size * torch.sin(angle)), dim=-1)


        program = onnxplain.export(Product(), (torch.ones(3), torch.ones(3)))
        ```
    """

    operator: str
    problem: str
    supported: tuple[str, ...]

    message = "The operator '{operator}' has no translation for '{problem}'; supported are '{supported}'."
    everywhere = True
    volatile = ("supported",)


class OperatorNeedsNewerOpset(Rule, id="OXP3003", level=Level.ERROR, history=[Added("0.1.0")]):
    """An operator can only be written in a newer ONNX opset than the one asked for.

    What happened:
        `opset_version` asks for an opset in which ONNX has no operator for this, or one that lacks what is needed here.

    Why it matters:
        Each ONNX file names one opset version for all its operators, and runtimes read the operators by it.

    How to fix it:
        1. Ask for the opset that the finding names, or leave `opset_version` out.
        2. If the runtime cannot read that opset, write the line with other operators.

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

    message = "The operator '{operator}' needs ONNX opset '{needed}' or newer, but opset '{asked}' was asked for."
    everywhere = True


class TranslationFailed(Rule, id="OXP3004", level=Level.ERROR, history=[Added("0.1.0")]):
    """The function that translates an operator raised an exception, or returned something else than the operator does.

    What happened:
        There is a translation for the operator, but it raised when it was called for this node of the graph, or it returned more
        values than the operator, too few, or what is no ONNX value. The finding stands at the line of a translation of your own,
        or else at the line of the model; the exception is its cause.

    Why it matters:
        This part of the model has no form in ONNX.

    How to fix it:
        1. If the translation is from `custom_translation_table`, fix the function: its parameters are those of the ATen schema,
           and it returns ONNX values.
        2. Otherwise give a translation that works: `custom_translation_table={torch.ops.aten.name.overload: function}`, and
           report the failure of the built-in one.

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
