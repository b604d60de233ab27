"""Rules about effects of Python code that the graph lacks or contains unexpectedly."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class TrainingMode(Rule, id="OXP1007", level=Level.WARNING, history=[Added("0.1.0")]):
    """You export the model in training mode, and some of its layers behave differently there.

    What happened:
        Layers such as dropout and batch norm read `module.training`, which is True for a new module. The exported model does what
        they do in training: dropout zeroes random elements, and batch norm uses the statistics of the batch. Unlike the eager model,
        it does not update the running statistics.

    Why it matters:
        The results differ from those in evaluation, usually only slightly. It looks like a loss of accuracy.

    How to fix it:
        1. Call `model.eval()` before the export.
        2. If you want training mode, ignore the rule: `DiagnosticOptions(ignore=("OXP1007",))`.

    Example:
        ```python
        import torch

        import onnxplain

        model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Dropout(0.5))  # OXP1007
        program = onnxplain.export(model, (torch.ones(3, 4),))
        ```

        ```python
        import torch

        import onnxplain

        model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Dropout(0.5))
        program = onnxplain.export(model.eval(), (torch.ones(3, 4),))
        ```
    """

    layers: tuple[str, ...]

    message = "The model is in training mode, which changes the results of '{layers}'."
    volatile = ("layers",)


class AttributeChanged(Rule, id="OXP1018", level=Level.WARNING, history=[Added("0.1.0")]):
    """The model changes an attribute or a variable that outlives the call of `forward`.

    What happened:
        `forward` assigns to an attribute of a module or of a class, to a global variable, or to a variable of an enclosing function;
        or it adds something to a list or dict of one of them. Capture ran the line once. The graph computes outputs from inputs and
        keeps nothing between runs.

    Why it matters:
        The exported model does not change it. Code that reads it later, in the next call or outside the model, sees the old value.

    How to fix it:
        1. Return the value, `return y, features`, which makes it an output of the model.
        2. If the model needs the value in its next call, take it as an input and return the new value.
        3. If the value is only for debugging, skip the line during export: `if not torch.compiler.is_exporting():`.

    Example:
        ```python
        import torch

        import onnxplain


        class Probe(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.seen = []

            def forward(self, x):
                self.seen.append(x * 2)  # OXP1018
                return x + 1


        program = onnxplain.export(Probe(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Probe(torch.nn.Module):
            def forward(self, x):
                return x + 1, x * 2


        program = onnxplain.export(Probe(), (torch.ones(3),))
        ```
    """

    attribute: str

    message = "The line changes '{attribute}'; the exported model does not."


class HookTraced(Rule, id="OXP1019", level=Level.NOTE, history=[Added("0.1.0")]):
    """A forward hook ran during capture, and its operators are part of the exported model.

    What happened:
        A module has one of your forward hooks or forward pre-hooks. Capture calls modules as Python does, including their hooks.

    Why it matters:
        This is fine if the hook belongs to the model. But capture also exports a hook that a debugging session left behind.

    How to fix it:
        If you do not want to export the hook, remove it before the export: `handle.remove()`.

    Example:
        ```python
        import torch

        import onnxplain


        def double(module, args, output):
            return output * 2  # OXP1019


        model = torch.nn.Linear(3, 2).eval()
        model.register_forward_hook(double)
        program = onnxplain.export(model, (torch.ones(1, 3),))
        ```

        ```python
        import torch

        import onnxplain

        model = torch.nn.Linear(3, 2).eval()
        program = onnxplain.export(model, (torch.ones(1, 3),))
        ```
    """

    function: str
    module: str

    message = "The hook '{function}' of '{module}' is part of the exported model."


class ExportOnlyBranch(Rule, id="OXP1021", level=Level.NOTE, history=[Added("0.1.0")]):
    """The model asks whether it is being exported, so the exported model may differ from the one that runs in Python.

    What happened:
        A function that ran during capture calls `torch.compiler.is_exporting()` or a similar function, whose result during an
        export differs from that in Python. `torch.jit.is_tracing()` does so only beside a test of a dynamic size, as in
        `if not torch.jit.is_tracing() and height == width`: the export takes the branch for traces, which is right for all sizes.

    Why it matters:
        Tests in eager mode do not cover code that runs only during an export. If the two branches compute different things, so do
        the two models.

    How to fix it:
        Make sure that both branches compute the same: export with `verify=True`, which compares the exported model with the eager
        one.

    Example:
        ```python
        import torch

        import onnxplain


        class Clipped(torch.nn.Module):
            def forward(self, x):
                if torch.compiler.is_exporting():  # OXP1021
                    return x.clamp(min=0)
                return x.relu()


        program = onnxplain.export(Clipped(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Clipped(torch.nn.Module):
            def forward(self, x):
                return x.relu()


        program = onnxplain.export(Clipped(), (torch.ones(3),))
        ```
    """

    test: str

    message = "'{test}' returns a different value during export."


class GradientTraced(Rule, id="OXP1022", level=Level.NOTE, history=[Added("0.1.0")]):
    """The model differentiates in `forward`, so the exported model contains the operators of the backward pass.

    What happened:
        `torch.autograd.grad` or a function of `torch.func` ran during capture. Ordinary operators compute its result, and capture
        recorded them.

    Why it matters:
        The exported model is correct, but larger than `forward` looks. If you defined a `backward`, capture traced it as well.

    How to fix it:
        You need not do anything. If you know a formula for the gradient, write it to make the model smaller.

    Example:
        ```python
        import torch

        import onnxplain


        class Force(torch.nn.Module):
            def forward(self, x):
                x = x.requires_grad_()
                (slope,) = torch.autograd.grad((x**3).sum(), x)  # OXP1022
                return slope


        program = onnxplain.export(Force(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Force(torch.nn.Module):
            def forward(self, x):
                return 3 * x**2


        program = onnxplain.export(Force(), (torch.ones(3),))
        ```
    """

    function: str

    message = "The gradient of '{function}' consists of ordinary operators in the exported model."


class SideEffectLeftOut(Rule, id="OXP1039", level=Level.NOTE, history=[Added("0.2.0")]):
    """A line of the model prints, logs, warns or writes a file, and the exported model does not.

    What happened:
        `forward` called `print`, a logger, `warnings.warn` or a function that opens a file to write it. Capture ran the line once. An ONNX
        graph computes outputs from inputs and does nothing else.

    Why it matters:
        The outputs are the same. But no run of the exported model shows or writes what the line does.

    How to fix it:
        1. If the line is only for debugging, skip it during export: `if not torch.compiler.is_exporting():`.
        2. If somebody needs the value, return it, which makes it an output of the model, and print or write it in the program that runs
           the model.

    Example:
        ```python
        import torch

        import onnxplain


        class Halved(torch.nn.Module):
            def forward(self, x):
                print("forward called with", x.shape)  # OXP1039
                return x / 2


        program = onnxplain.export(Halved(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Halved(torch.nn.Module):
            def forward(self, x):
                return x / 2


        program = onnxplain.export(Halved(), (torch.ones(3),))
        ```
    """

    call: str

    message = "The exported model does not run '{call}'."
