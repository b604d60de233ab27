"""Chapter 2: passes over the captured FX graph."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class MutationNotRemoved(Rule, id="OXP2001", level=Level.ERROR, history=[Added("0.1.0")]):
    """No operator without side effects can replace an in-place operator.

    What happened:
        ONNX operators never change their inputs, so onnxplain replaces every in-place operator with one that returns a new tensor.
        PyTorch knows the replacements for its operators. It knows none for this operator, and never knows one for a custom operator
        that returns its input, for a write to elements that `expand` repeats, or for a write through windows of `unfold` that
        overlap or leave elements out.

    Why it matters:
        Operators that read the tensor afterwards would see its old data.

    How to fix it:
        1. Use PyTorch's operators, in place or not. Clone an expanded tensor or windows before you write to them.
        2. Give your custom operator a variant that returns its result as a new tensor, and translate that variant.

    Example:
        ```python
        import torch

        import onnxplain

        library = torch.library.Library("demo", "FRAGMENT")
        library.define("clear(Tensor(a!) x) -> Tensor(a!)")


        @torch.library.impl(library, "clear", "CompositeExplicitAutograd")
        def clear(x):
            return x.zero_()


        @torch.library.register_fake("demo::clear", lib=library)
        def _(x):
            return x


        class Cleared(torch.nn.Module):
            def forward(self, x):
                y = x.clone()
                torch.ops.demo.clear(y)  # OXP2001
                return x - y


        program = onnxplain.export(Cleared(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Cleared(torch.nn.Module):
            def forward(self, x):
                y = x.clone()
                y.zero_()
                return x - y


        program = onnxplain.export(Cleared(), (torch.ones(3),))
        ```
    """

    operator: str

    message = "The in-place operator '{operator}' has no replacement without side effects."


class DecompositionFailed(Rule, id="OXP2002", level=Level.ERROR, history=[Added("0.1.0")]):
    """The decomposition of an operator into simpler operators raised an exception.

    What happened:
        The operator has no translation to ONNX. PyTorch has a decomposition for it: a function that computes the same with simpler
        operators. That function raised an exception for this operator's inputs.

    Why it matters:
        Without the simpler operators, ONNX cannot express this part of the model.

    How to fix it:
        1. If you defined the decomposition, correct it: like a captured model, it must work for all data.
        2. Write the line with other operators, or with other arguments.
        3. Translate the whole operator: `custom_translation_table={torch.ops.aten.name.overload: function}`.

    Example:
        ```python
        import torch
        from torch._decomp import register_decomposition

        import onnxplain


        @torch.library.custom_op("demo::flip", mutates_args=())
        def flip(x: torch.Tensor) -> torch.Tensor:
            return torch.where(x.sum() < 0, -x, x)


        @flip.register_fake
        def _(x):
            return torch.empty_like(x)


        @register_decomposition(torch.ops.demo.flip.default)
        def decompose_flip(x):
            return -x if x.sum() < 0 else x.clone()


        class Flip(torch.nn.Module):
            def forward(self, x):
                return flip(x)  # OXP2002


        program = onnxplain.export(Flip(), (torch.ones(3),))
        ```

        ```python
        import torch
        from torch._decomp import register_decomposition

        import onnxplain


        @torch.library.custom_op("demo::flipped", mutates_args=())
        def flip(x: torch.Tensor) -> torch.Tensor:
            return torch.where(x.sum() < 0, -x, x)


        @flip.register_fake
        def _(x):
            return torch.empty_like(x)


        @register_decomposition(torch.ops.demo.flipped.default)
        def decompose_flip(x):
            return torch.where(x.sum() < 0, -x, x)


        class Flip(torch.nn.Module):
            def forward(self, x):
                return flip(x)


        program = onnxplain.export(Flip(), (torch.ones(3),))
        ```
    """

    operator: str
    error: str

    message = "The decomposition of '{operator}' failed with '{error}'."


class MutationDropped(Rule, id="OXP2003", level=Level.WARNING, history=[Added("0.1.0")]):
    """The model updates an input or a buffer in place; the exported model does not.

    What happened:
        `forward` writes into a tensor that outlives the call: an input, a buffer, or a tensor that is an attribute of a module. The
        exported model computes with the new data but does not change the tensor.

    Why it matters:
        A buffer has the same data at the start of every run: counters, caches and running statistics never change. A caller who
        reads an updated input reads the old data.

    How to fix it:
        1. Take the state as an input of `forward` and return the new state, which the caller passes to the next run.
        2. If the update matters only in training, skip it in evaluation, `if self.training: ...`, and export `model.eval()`.

    Example:
        ```python
        import torch

        import onnxplain


        class Sum(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("total", torch.zeros(3))

            def forward(self, x):
                self.total.add_(x)  # OXP2003
                return self.total * 2


        program = onnxplain.export(Sum(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Sum(torch.nn.Module):
            def forward(self, x, total):
                total = total + x
                return total * 2, total


        program = onnxplain.export(Sum(), (torch.ones(3), torch.zeros(3)))
        ```
    """

    kind: str
    name: str

    message = "The model updates the '{kind}' '{name}' in place; the exported model does not."


class CustomOperatorInlined(Rule, id="OXP2004", level=Level.WARNING, history=[Added("0.1.0")]):
    """A custom operator has no translation, so onnxplain exported its Python implementation.

    What happened:
        The model calls an operator that was defined with `torch.library` and has no translation. Its implementation is Python code
        that calls other operators, and onnxplain exported those.

    Why it matters:
        The exported model computes the same. But it does not contain the operator: a runtime with a kernel for the operator does
        not use that kernel.

    How to fix it:
        1. If the runtime has the operator, translate to it:
           `custom_translation_table={torch.ops.namespace.name.default: function}`.
        2. If the operators of the implementation are fine, ignore the rule at this line: `# onnxplain: ignore[OXP2004]`.

    Example:
        ```python
        import torch

        import onnxplain


        @torch.library.custom_op("demo::triple", mutates_args=())
        def triple(x: torch.Tensor) -> torch.Tensor:
            return x * 3


        @triple.register_fake
        def _(x):
            return torch.empty_like(x)


        class Triple(torch.nn.Module):
            def forward(self, x):
                return triple(x)  # OXP2004


        program = onnxplain.export(Triple(), (torch.ones(3),))
        ```

        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        @torch.library.custom_op("demo::triple", mutates_args=())
        def triple(x: torch.Tensor) -> torch.Tensor:
            return x * 3


        @triple.register_fake
        def _(x):
            return torch.empty_like(x)


        class Triple(torch.nn.Module):
            def forward(self, x):
                return triple(x)


        def translate_triple(x):
            return op.Mul(x, 3.0)


        table = {torch.ops.demo.triple.default: translate_triple}
        program = onnxplain.export(Triple(), (torch.ones(3),), custom_translation_table=table)
        ```
    """

    operator: str

    message = "The custom operator '{operator}' has no translation, so onnxplain exported its Python implementation."
