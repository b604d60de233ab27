"""Chapter 1, continued: what Python does around the operators, of which the graph keeps nothing."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class AttributeChanged(Rule, id="OXP1018", level=Level.WARNING, history=[Added("0.1.0")]):
    """The model changes an attribute of its own in `forward`.

    What happened:
        `forward` assigns to an attribute of a module, or puts something into a list or dict that the module holds. Capture ran that line
        once; the graph computes outputs from inputs and keeps nothing from one run to the next.

    Why it matters:
        The exported model does not do it. What reads the attribute afterwards, in the next call or outside, does not see a change.

    How to fix it:
        1. Return the value: `return y, features`; then it is an output of the model.
        2. If the model needs it in its next call, take it as an input and return the new one.
        3. If it is for debugging only, skip the line in exports: `if not torch.compiler.is_exporting():`.

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

    message = "The line changes the attribute '{attribute}'; the exported model does not."


class HookTraced(Rule, id="OXP1019", level=Level.NOTE, history=[Added("0.1.0")]):
    """A forward hook ran during capture, and what it computes is part of the exported model.

    What happened:
        A module has a forward hook or a forward pre-hook of yours. Capture calls modules as Python does, hooks included.

    Why it matters:
        Nothing is wrong with that, if the hook belongs to the model. A hook that was left there by a debugging session is exported, too.

    How to fix it:
        If the hook is not meant to be exported, remove it before: `handle.remove()`.

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


class TensorRead(Rule, id="OXP1020", level=Level.NOTE, history=[Added("0.1.0")]):
    """Python read the data of a tensor that the model holds; the number is a constant of the exported model.

    What happened:
        `float(t)`, `t.item()`, `t.tolist()` or `t.numpy()` made a Python value of a tensor that is no parameter, buffer or input, but a
        plain attribute of a module.

    Why it matters:
        The graph holds the number, and no initializer: who changes the weights of the ONNX model later cannot change this.

    How to fix it:
        1. Compute with the tensor itself: `x * self.scale` in place of `x * float(self.scale)`.
        2. If the number is never meant to change, keep it as a Python float.

    Example:
        ```python
        import torch

        import onnxplain


        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.tensor(2.0)

            def forward(self, x):
                return x * float(self.scale)  # OXP1020


        program = onnxplain.export(Scaled(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.tensor(2.0)

            def forward(self, x):
                return x * self.scale


        program = onnxplain.export(Scaled(), (torch.ones(3),))
        ```
    """

    expression: str

    message = "The value of '{expression}' was read during capture and is a constant of the exported model."


class ExportOnlyBranch(Rule, id="OXP1021", level=Level.NOTE, history=[Added("0.1.0")]):
    """The model asks whether it is being exported, so the exported model may be another one than the model that runs in Python.

    What happened:
        A function that ran during capture calls `torch.compiler.is_exporting()` or one like it, which answers otherwise in Python.

    Why it matters:
        Code that only exports run is not covered by tests in eager mode. If the two ways compute different things, so do the two models.

    How to fix it:
        Make sure that both ways compute the same: export with `verify=True`, which compares the exported model with the eager one.

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

    message = "The answer of '{test}' is another one in an export than in Python."


class GradientTraced(Rule, id="OXP1022", level=Level.NOTE, history=[Added("0.1.0")]):
    """The model differentiates in `forward`; the operators of the backward pass are part of the exported model.

    What happened:
        `torch.autograd.grad` or a function of `torch.func` ran during capture. Its result is computed by ordinary operators, and they
        were captured.

    Why it matters:
        The exported model is right, but larger than `forward` looks, and a function with a `backward` of its own is traced through that.

    How to fix it:
        Nothing has to be done. Where a formula for the gradient is known, writing it makes a smaller model.

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

    message = "The gradient of '{function}' was captured as ordinary operators."


class CheckDropped(Rule, id="OXP1023", level=Level.WARNING, history=[Added("0.1.0")]):
    """The exported model does not check what the captured program checks when it runs.

    What happened:
        The model is right only for some data: a number that comes from a tensor must be even, say, or a tensor must be true. The captured
        program stops otherwise. ONNX has no operator that stops a run, so the check is left out.

    Why it matters:
        For other data the exported model fails somewhere else, or gives a wrong result without a sign of it.

    How to fix it:
        1. Make sure of it before the model is run, and say so where it is deployed.
        2. Write the line so that it works for all data: a mask, padding, `x[: n // 2 * 2]`.

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


class LegacyDynamicAxes(Rule, id="OXP1024", level=Level.NOTE, history=[Added("0.1.0")]):
    """The argument `dynamic_axes` was used, which `dynamic_shapes` has replaced.

    What happened:
        `dynamic_axes` names axes by the ONNX names of inputs and outputs. It was turned into `dynamic_shapes`, which mirrors the inputs.

    Why it matters:
        The export is complete. But torch.onnx no longer recommends the argument, and `dynamic_shapes` can say more: that two sizes are
        equal, how large they may be.

    How to fix it:
        Pass the `dynamic_shapes` that the finding shows.

    Example:
        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3, 4),), input_names=["x"], dynamic_axes={"x": {0: "batch"}})  # OXP1024
        ```

        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3, 4),), input_names=["x"], dynamic_shapes={"x": {0: "batch"}})
        ```
    """

    inputs: tuple[str, ...]

    message = "The argument dynamic_axes, which names axes of '{inputs}', has been replaced by dynamic_shapes."


class ExampleOfSizeOne(Rule, id="OXP1025", level=Level.NOTE, history=[Added("0.1.0")]):
    """A dim that is to be dynamic has size 1 in the example.

    What happened:
        `dynamic_shapes` asks for a dynamic dim, and the example input has one element along it. Size 1 is special in PyTorch: it
        broadcasts, it is contiguous in any order, and it may take branches that no other size takes.

    Why it matters:
        onnxplain captures the model so that nothing is concluded from the 1. But what `verify` compares is that size only, and a model that
        broadcasts by accident goes unnoticed.

    How to fix it:
        Give an example with at least 2 elements along dynamic dims: `torch.randn(2, 8)`.

    Example:
        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.randn(1, 4),), dynamic_shapes={"x": {0: "batch"}})  # OXP1025
        ```

        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.randn(2, 4),), dynamic_shapes={"x": {0: "batch"}})
        ```
    """

    dims: tuple[str, ...]

    message = "The example has size 1 along the dynamic '{dims}'."
