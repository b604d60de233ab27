"""Rules about captures that fail because of an exception."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class UserCodeRaised(Rule, id="OXP1005", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model's code raised an exception during capture.

    What happened:
        Capture runs `forward` once, and `forward` raised an exception. The same call fails without an export as well.

    Why it matters:
        There is no graph to export. The fault is in the model or in the example inputs, not in the export.

    How to fix it:
        1. Call `model(*args, **kwargs)` alone and make that work first.
        2. Compare the shapes and dtypes of the example inputs with those that the line expects.

    Example:
        ```python
        import torch

        import onnxplain


        class Classifier(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.head = torch.nn.Linear(3, 2)

            def forward(self, x):
                return self.head(x)  # OXP1005


        program = onnxplain.export(Classifier(), (torch.ones(1, 4),))
        ```

        ```python
        import torch

        import onnxplain


        class Classifier(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.head = torch.nn.Linear(3, 2)

            def forward(self, x):
                return self.head(x)


        program = onnxplain.export(Classifier(), (torch.ones(1, 3),))
        ```
    """

    error: str

    message = "The model's code raised '{error}' during capture."


class GraphBreak(Rule, id="OXP1006", level=Level.ERROR, history=[Added("0.1.0")]):
    """TorchDynamo cannot keep a construct in one graph.

    What happened:
        The strict strategy uses TorchDynamo, which interprets the bytecode of `forward`. It met Python code that it cannot turn
        into a graph. There torch.compile would split the graph and run the code in Python, but an export needs one graph.

    Why it matters:
        ONNX cannot run Python between two graphs.

    How to fix it:
        1. Export with the non-strict strategy, which runs the construct in Python during capture. By default it is the first
           strategy.
        2. Move the construct out of `forward`, or write it with tensor operators.

    Example:
        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                torch._dynamo.graph_break()  # OXP1006
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3),), strategies=("strict",))
        ```

        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3),), strategies=("strict",))
        ```
    """

    construct: str
    reason: str

    message = "TorchDynamo cannot keep '{construct}' in one graph: '{reason}'."


class CaptureFailed(Rule, id="OXP1009", level=Level.ERROR, history=[Added("0.1.0")]):
    """Capture failed for a reason that no other rule covers.

    What happened:
        Every capture strategy failed. The finding holds the error of the first one; its notes hold the errors of the others.

    Why it matters:
        Without a captured graph there is nothing to export.

    How to fix it:
        1. Look for the error among the known causes below, and do what is said there.
        2. Otherwise write the line with other operators, or compute its result outside the model and pass it in.
        3. Run `torch.export.export(model, args)` alone. If it fails in the same way, consult its documentation and its issues.

        Known causes, by a part of the error:

        - `Found <class ...> in output`: `forward` returns an object that torch.export cannot take apart, such as a distribution, a set or
          a generator. Return tensors, or tuples, lists, dicts or dataclasses of tensors: what the object is made of.
        - `must be bool, not SymBool`, `descending=SymBool`: the argument of an operator takes no size. Make a plain value of it, such as
          `bool(x.shape[0] > 1)`. Capture then fixes what the expression compares.
        - `Cannot access data pointer of Tensor`, `Not available for 'meta' device type`, `Can't pickle`: the line reads the memory of a
          tensor, which has no data during a capture. Use the tensor itself, and `clone()` for a copy. Foreign code that needs the memory
          belongs in a custom operator with a fake kernel (OXP1027) and a translation (OXP3001).
        - `not supported for tensor subclasses`: the line calls a Python function for each element (`map_`, `apply_`). Call tensor operators
          on the whole tensor, or `torch.vmap`.
        - `fake tensor in the exported program constant's list`, `AssertionError: False, True`: a tensor was computed out of the capture's
          sight, for example in a thread. Compute it in `forward`, without threads.
        - `directly modify sizes`: `resize_` of a dynamic dim. Use a slice, `torch.nn.functional.pad` or `reshape`.
        - `could not convert string to float: '...'`: the line reads numbers from the text of a tensor, which is empty during a capture.
          Compute with the tensor.
        - `expected an ExportedProgram`, `expected a program`: a strategy that you wrote. Return an ExportedProgram with the inputs of the
          model, or list one of onnxplain's strategies after yours.

    Example:
        ```python
        import torch

        import onnxplain


        class Result:
            def __init__(self, scores):
                self.scores = scores
                self.best = lambda: scores.max()


        class Double(torch.nn.Module):
            def forward(self, x):
                return Result(x * 2)  # OXP1009


        program = onnxplain.export(Double(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return {"scores": x * 2}


        program = onnxplain.export(Double(), (torch.ones(3),))
        ```
    """

    error: str

    message = "The model could not be captured: '{error}'."


class FakeKernelMissing(Rule, id="OXP1027", level=Level.ERROR, history=[Added("0.1.0")]):
    """An operator has no fake kernel, so capture does not know the shape of its result.

    What happened:
        Capture runs the model on tensors without data. For that, an operator needs a fake kernel: a function that returns an empty
        tensor with the right shape and dtype. This operator has none. It is a custom operator, or one of the few of PyTorch without.

    Why it matters:
        Nothing after the operator has a known shape, so capture ends there.

    How to fix it:
        Register a fake kernel: `@torch.library.register_fake("namespace::name")`. The finding shows one that fits the operator's
        result for the example. Make its sizes depend on the inputs' sizes where they do.

    Example:
        ```python
        import torch

        import onnxplain


        @torch.library.custom_op("demo::halve", mutates_args=())
        def halve(x: torch.Tensor) -> torch.Tensor:
            return x / 2


        class Halve(torch.nn.Module):
            def forward(self, x):
                return halve(x)  # OXP1027


        program = onnxplain.export(Halve(), (torch.ones(3),))
        ```

        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        @torch.library.custom_op("demo::halve", mutates_args=())
        def halve(x: torch.Tensor) -> torch.Tensor:
            return x / 2


        @halve.register_fake
        def _(x):
            return torch.empty_like(x)


        class Halve(torch.nn.Module):
            def forward(self, x):
                return halve(x)


        table = {torch.ops.demo.halve.default: lambda x: op.Div(x, 2.0)}
        program = onnxplain.export(Halve(), (torch.ones(3),), custom_translation_table=table)
        ```
    """

    operator: str

    message = "The operator '{operator}' has no fake kernel."


class DeviceMismatch(Rule, id="OXP1032", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model combines tensors on different devices, or uses a device that this machine lacks.

    What happened:
        The model creates a tensor on a fixed device, such as `torch.zeros(3, device="cuda")`, and combines it with an input on
        another device. Or this machine does not have the device. The model fails in eager mode as well.

    Why it matters:
        There is no graph to export.

    How to fix it:
        1. Create the tensor on the input's device: `device=x.device`.
        2. Make the tensor a buffer, which `model.to(device)` moves: `self.register_buffer(...)`.

    Example:
        ```python
        import torch

        import onnxplain


        class Shift(torch.nn.Module):
            def forward(self, x):
                return x + torch.zeros(3, device="meta")  # OXP1032


        program = onnxplain.export(Shift(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Shift(torch.nn.Module):
            def forward(self, x):
                return x + torch.zeros(3, device=x.device)


        program = onnxplain.export(Shift(), (torch.ones(3),))
        ```
    """

    error: str

    message = "Tensors are on different devices, or on a device that is not available: '{error}'."
