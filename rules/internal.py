"""Chapter 0: faults of onnxplain itself, and of the process that it runs in."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class InternalError(Rule, id="OXP0001", level=Level.ERROR, history=[Added("0.1.0")]):
    """A stage of the export raised an exception that onnxplain did not expect.

    What happened:
        An exception escaped a stage of the export. Neither your model nor your arguments explain it: this is a bug in onnxplain.

    Why it matters:
        The export has no result, and the exception says nothing about your model. Earlier findings in the log still hold.

    How to fix it:
        Report the bug at `https://github.com/onnxplain/onnxplain/issues`. Export again with `repro=True` (`--repro`), and attach the SARIF
        log and the script that the export writes. The log holds the exception, its stack and the versions of all packages; the script
        fails alike without your weights and data. Both quote lines of your source, so read them first. Until the bug is fixed, another
        capture strategy (`strategies=("strict",)`) or `optimize=False` may avoid it.

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


class ExportCutShort(Rule, id="OXP0002", level=Level.ERROR, history=[Added("0.2.0")]):
    """Something ended the process, or interrupted it, before the export was done.

    What happened:
        The log holds what the export had found until then. A signal (Ctrl-C, the time limit of a job) interrupted it, or the process is
        gone: out of memory, a segmentation fault in a kernel, `os.abort`, `kill -9`. While an export runs, its log says the same. So does a
        log that the export could not replace in the end, for example because the disk was full.

    Why it matters:
        The export has no result, and the list of findings may be incomplete. `onnxplain gate` gives no verdict on such a log.

    How to fix it:
        1. Export again with more time and more memory. An interrupted export names the line that was running: that line may never end.
        2. If the process dies each time in the stage `capture`, look for a custom kernel that your model calls.
        3. If memory is the reason, build and export the model in `onnxplain.enable_fake_mode()`.

    Example:
        ```python
        import contextlib
        import pathlib
        import types

        import torch

        import onnxplain
        from onnxplain.diagnostics import read_log


        class Stopped(torch.nn.Module):
            def forward(self, x):
                raise KeyboardInterrupt  # OXP0002


        with contextlib.suppress(KeyboardInterrupt):
            onnxplain.export(Stopped(), (torch.ones(3),), sarif="stopped.sarif")
        program = types.SimpleNamespace(diagnostics=read_log(pathlib.Path("stopped.sarif")))
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
    reason: str

    message = "The export was cut short in the stage '{stage}': '{reason}'."
    volatile = ("stage", "reason")


class WorkerEnded(Rule, id="OXP0003", level=Level.ERROR, history=[Added("0.2.0")]):
    """The process in which `onnxplain triage` exported a model ended before the export was done.

    What happened:
        `onnxplain triage` exports each model in a separate process, and holds it to limits of time and memory. This process crashed (a
        segmentation fault in a kernel, `os.abort`), something killed it, or it was beyond a limit. The other models went on.

    Why it matters:
        The model has no result, and the list of its findings may be incomplete. The notes name those that the export had found before.

    How to fix it:
        1. After a time limit, look at the line that ran: it may never end. If it does end, raise `--time-limit`.
        2. After a memory limit, raise `--memory-limit` or lower `--jobs`, or build the model in `onnxplain.enable_fake_mode()`. The signal
           SIGKILL often means that the system itself had no memory left.
        3. After a crash, read the file beside the log that ends with `.txt`: what the process printed, and the lines of Python that ran.
           Look for a custom kernel that your model calls.

    Example:
        ```python
        import os
        import pathlib
        import types

        import torch

        from onnxplain.cli import main
        from onnxplain.diagnostics import read_log


        class Stops(torch.nn.Module):
            def forward(self, x):
                os.abort()  # OXP0003


        def build():
            return Stops(), (torch.ones(3),)


        if __name__ != "program":  # The process of the model imports this file, program.py, as a module.
            main(["triage", "program.py"], standalone_mode=False)
            program = types.SimpleNamespace(diagnostics=read_log(pathlib.Path("triage/logs/program_build.sarif")))
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
    cause: str

    message = "The process of the export ended in the stage '{stage}': '{cause}'."
    volatile = ("stage",)


class TargetNotLoaded(Rule, id="OXP0004", level=Level.ERROR, history=[Added("0.2.0")]):
    """A target of `onnxplain triage` did not yield a model to export.

    What happened:
        The file or module of the target could not be imported, it lacks the name, its function raised an exception, or it returned
        something other than a model with its example inputs. The other models went on.

    Why it matters:
        Nothing is known about the model.

    How to fix it:
        1. Run `onnxplain export` with the same target, which shows more of the error.
        2. Let the target be a module or its class, or a function that returns a module or `(model, args, kwargs, dynamic_shapes)`.

    Example:
        ```python
        import pathlib
        import types

        from onnxplain.cli import main
        from onnxplain.diagnostics import read_log


        def build():
            raise LookupError("no such layer")  # OXP0004


        if __name__ != "program":  # The process of the model imports this file, program.py, as a module.
            main(["triage", "program.py"], standalone_mode=False)
            program = types.SimpleNamespace(diagnostics=read_log(pathlib.Path("triage/logs/program_build.sarif")))
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

    error: str

    message = "There is no model to export: '{error}'."
