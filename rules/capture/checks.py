"""Rules about run-time checks, which an exported model does not do."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, MeaningChanged, Rule


class CheckDropped(
    Rule,
    id="OXP1023",
    level=Level.WARNING,
    history=[Added("0.1.0"), MeaningChanged("0.2.0", "checks that your code writes, such as `assert`, are OXP1038")],
):
    """The exported model does not check a condition that the captured program checks.

    What happened:
        The model is correct only for some data. For example, a number from a tensor must be even. The captured program stops if the
        condition is false. ONNX has no operator that stops a run, so the exported model omits the check.

    Why it matters:
        For other data the exported model fails elsewhere, or is silently wrong.

    How to fix it:
        1. Check the condition before you run the model, and document it where you deploy the model.
        2. Write the line so that it works for all data: with a mask, with padding, or with `x[: n // 2 * 2]`.

    Example:
        ```python
        import torch

        import onnxplain


        class Pairs(torch.nn.Module):
            def forward(self, x, n):
                head = x[: n.item()]
                return head.reshape(2, -1).sum(1)  # OXP1023


        program = onnxplain.export(Pairs(), (torch.ones(12), torch.tensor(6)))
        ```

        ```python
        import torch

        import onnxplain


        class Pairs(torch.nn.Module):
            def forward(self, x, n):
                weights = (torch.arange(12) < n).float()
                return (x * weights).reshape(2, -1).sum(1)


        program = onnxplain.export(Pairs(), (torch.ones(12), torch.tensor(6)))
        ```
    """

    check: str

    message = "The exported model does not check that '{check}'."


class CheckLeftOut(Rule, id="OXP1038", level=Level.NOTE, history=[Added("0.2.0")]):
    """A check that your code writes is not in the exported model.

    What happened:
        `forward` calls `torch._check` or `torch._assert`, or has an `assert` or an `if` that only raises an exception, about the data or
        the dynamic sizes of a run. ONNX has no operator that stops a run, so the exported model omits the check. A check whose answer the
        capture knows is no such check.

    Why it matters:
        PyTorch stops where the condition is false. The exported model goes on, and fails elsewhere or returns other numbers.

    How to fix it:
        1. Check the condition in the program that runs the model.
        2. If the check is only for debugging, you need not do anything.

    Example:
        ```python
        import torch

        import onnxplain


        class Root(torch.nn.Module):
            def forward(self, x):
                torch._assert_async((x >= 0).all())  # OXP1038
                return x.sqrt()


        program = onnxplain.export(Root(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Root(torch.nn.Module):
            def forward(self, x):
                return x.clamp(min=0).sqrt()


        program = onnxplain.export(Root(), (torch.ones(3),))
        ```
    """

    check: str

    message = "The exported model does not check that '{check}'."
