"""Chapter 0: faults of onnxplain itself."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class InternalError(Rule, id="OXP0001", level=Level.ERROR, history=[Added("0.1.0")]):
    """A stage of the export raised an exception that onnxplain did not expect.

    What happened:
        An exception escaped a stage of the export. Neither your model nor your arguments explain it: this is a bug in onnxplain.

    Why it matters:
        The export has no result, and the exception says nothing about your model. Earlier findings in the log still hold.

    How to fix it:
        Report the bug and attach the SARIF log of the export: it holds the exception, its stack and the versions of all packages
        involved. Until it is fixed, another capture strategy (`strategies=("strict",)`) or `optimize=False` may avoid it.

    Example:
        ```python
        from unittest import mock

        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        # No model is known to cause this, so the program puts a fault into a stage.
        with mock.patch("onnxplain.pipeline.build", side_effect=RuntimeError("a fault")):
            program = onnxplain.export(Double(), (torch.ones(3),))  # OXP0001
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

    stage: str
    error: str

    message = "The stage '{stage}' raised an unexpected '{error}'; this is a bug in onnxplain."
