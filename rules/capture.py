"""Chapter 1: capture, the way from a model and its arguments to an ExportedProgram."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class DataDependentBranch(Rule, id="OXP1001", level=Level.ERROR, history=[Added("0.1.0")]):
    """A Python branch asks for the data in a tensor.

    What happened:
        A Python `if`, `while`, `assert`, `and` or `or` needs a bool that is computed from a tensor's data. torch.export captures
        one graph for all inputs, and it sees shapes and dtypes, but no data: it cannot know which way to go.

    Why it matters:
        Each input may take another branch. A graph that holds only the branch of the example input would be wrong for the others
        without a sign of it, so torch.export refuses.

    How to fix it:
        1. Compute both branches and choose by element with `torch.where(condition, a, b)`.
        2. Keep two branches in the graph with `torch.cond(condition, true_fn, false_fn, operands)`, which becomes an ONNX `If`.
        3. If the condition is the same for every input, make it a Python bool of the model, set before the export.

    Example:
        ```python
        import torch

        import onnxplain


        class Flip(torch.nn.Module):
            def forward(self, x):
                if x.sum() < 0:  # OXP1001
                    return -x
                return x


        program = onnxplain.export(Flip(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Flip(torch.nn.Module):
            def forward(self, x):
                return torch.where(x.sum() < 0, -x, x)


        program = onnxplain.export(Flip(), (torch.ones(3),))
        ```
    """

    condition: str

    message = "The branch on '{condition}' depends on the data in a tensor."


class DataDependentValue(Rule, id="OXP1002", level=Level.ERROR, history=[Added("0.1.0")]):
    """A Python number that capture has to know is computed from the data in a tensor.

    What happened:
        `.item()`, `.tolist()`, `int(t)` or an operator such as `nonzero` made a Python number from a tensor's data, and Python
        then needs its value: for the length of a `range`, an index of a list, or a comparison that decides which operators run.

    Why it matters:
        The graph must hold for all data. Its operators can compute with such a number, but how many operators there are cannot
        depend on it.

    How to fix it:
        1. Stay in tensors: a mask (`torch.arange(size) < n`) or a closed form replaces most loops.
        2. Where only a bound is missing, state it: `n = t.item(); torch._check(n >= 0); torch._check(n <= x.shape[0])`.
        3. If the number is the same for every input, make it a Python int of the model, set before the export.

    Example:
        ```python
        import torch

        import onnxplain


        class Grow(torch.nn.Module):
            def forward(self, x, steps):
                for _ in range(steps.item()):  # OXP1002
                    x = x * 2
                return x


        program = onnxplain.export(Grow(), (torch.ones(3), torch.tensor(2)))
        ```

        ```python
        import torch

        import onnxplain


        class Grow(torch.nn.Module):
            def forward(self, x, steps):
                return x * 2**steps


        program = onnxplain.export(Grow(), (torch.ones(3), torch.tensor(2)))
        ```
    """

    expression: str

    message = "The Python value '{expression}' depends on the data in a tensor."


class SpecializedDynamicDim(Rule, id="OXP1003", level=Level.ERROR, history=[Added("0.1.0")]):
    """A dim that was asked to be dynamic has only one size in the captured graph.

    What happened:
        `dynamic_shapes` asks for a dynamic dim, but at this line the model needs the dim's size as a Python number: as the length
        of a `range`, in an `int(...)`, as a dict's key, or against a constant such as the `3` of a `view`. Or the example's size is
        1, and the line broadcasts or squeezes the dim. The graph then holds for the example's size only.

    Why it matters:
        The exported model would reject every other size, or give wrong results for it.

    How to fix it:
        1. Write the line without the size as a number: `for` over a dim becomes one operator on the whole tensor, and a constant
           in `view` or `reshape` becomes `-1` or `x.shape[i]`.
        2. Give an example of another size, if that is 1.
        3. If the size is meant to be fixed, leave the dim out of `dynamic_shapes`.

    Example:
        ```python
        import torch

        import onnxplain


        class Total(torch.nn.Module):
            def forward(self, x):
                total = torch.zeros(4)
                for row in range(x.shape[0]):  # OXP1003
                    total = total + x[row]
                return total


        batch = torch.export.Dim("batch")
        program = onnxplain.export(Total(), (torch.ones(3, 4),), dynamic_shapes={"x": {0: batch}})
        ```

        ```python
        import torch

        import onnxplain


        class Total(torch.nn.Module):
            def forward(self, x):
                return x.sum(dim=0)


        batch = torch.export.Dim("batch")
        program = onnxplain.export(Total(), (torch.ones(3, 4),), dynamic_shapes={"x": {0: batch}})
        ```
    """

    dim: str
    value: int

    message = "The dim '{dim}' was asked to be dynamic, but the model fixes it to '{value}'."
    volatile = ("value",)


class DynamicShapesMismatch(Rule, id="OXP1004", level=Level.ERROR, history=[Added("0.1.0")]):
    """The argument `dynamic_shapes` has another structure than the inputs.

    What happened:
        `dynamic_shapes` must mirror the inputs: a dict by the names of the parameters of `forward`, or a tuple with one entry for
        each of them, with an entry for each tensor inside. It has other names, another length or another nesting.

    Why it matters:
        Nobody can tell which dim was meant, so nothing is exported.

    How to fix it:
        1. Use the parameter names of `forward`, not the names given by `input_names`.
        2. Name every parameter: `None` stands for one without dynamic dims.
        3. Mirror lists, tuples and dicts of tensors inside an input.

    Example:
        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        batch = torch.export.Dim("batch")
        program = onnxplain.export(Double(), (torch.ones(3, 4),), dynamic_shapes={"tokens": {0: batch}})  # OXP1004
        ```

        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        batch = torch.export.Dim("batch")
        program = onnxplain.export(Double(), (torch.ones(3, 4),), dynamic_shapes={"x": {0: batch}})
        ```
    """

    expected: str
    actual: str

    message = "The argument dynamic_shapes does not match the inputs: expected '{expected}', got '{actual}'."


class UserCodeRaised(Rule, id="OXP1005", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model's own code raised an exception while it was captured.

    What happened:
        Capture runs `forward` once, and `forward` raised. The same call without an export fails, too.

    Why it matters:
        There is no graph to export. The fault is in the model or in the example inputs, not in the export.

    How to fix it:
        1. Call `model(*args, **kwargs)` by itself and make that work first.
        2. Check the shapes and dtypes of the example inputs against what the line expects.

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

    message = "The model's own code raised '{error}' while it was captured."


class GraphBreak(Rule, id="OXP1006", level=Level.ERROR, history=[Added("0.1.0")]):
    """TorchDynamo, which the strict strategy uses, cannot keep a construct in one graph.

    What happened:
        The strict strategy interprets the bytecode of `forward`. It met Python that it cannot turn into a graph; torch.compile
        would break the graph in two there and run the construct in Python, but an export needs one graph.

    Why it matters:
        ONNX has no Python to run between two graphs.

    How to fix it:
        1. Export with the non-strict strategy, which runs the construct in Python during capture. It is the first one by default.
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


class TrainingMode(Rule, id="OXP1007", level=Level.WARNING, history=[Added("0.1.0")]):
    """The model is exported in training mode, and has layers that behave differently there.

    What happened:
        Layers such as dropout and batch norm read `module.training`, which is True for a new module. The export holds what they
        do in training: random zeros, statistics of the batch.

    Why it matters:
        The exported model gives other results than the evaluated one, mostly a little worse ones: it looks like a loss of
        accuracy.

    How to fix it:
        1. Call `model.eval()` before the export.
        2. If training mode is meant, ignore the rule: `DiagnosticOptions(ignore=("OXP1007",))`.

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

    message = "The model is in training mode, which makes a difference to '{layers}'."
    volatile = ("layers",)


class UnsupportedInputType(Rule, id="OXP1008", level=Level.ERROR, history=[Added("0.1.0")]):
    """An example input has a type that torch.export cannot take apart into tensors.

    What happened:
        Inputs are tensors, Python numbers, strings, bools and None, and lists, tuples, dicts and registered classes of these.
        This input is an object of another class.

    Why it matters:
        An ONNX model has a flat list of tensors as inputs. What is inside the object is not known, so its tensors have no place
        in that list.

    How to fix it:
        1. Register a dataclass: `torch.export.register_dataclass(Batch)`.
        2. Register another class with a way to take it apart and back: `torch.utils._pytree.register_pytree_node`.
        3. Take the tensors as parameters of `forward` and build the object inside.

    Example:
        ```python
        import dataclasses

        import torch

        import onnxplain


        @dataclasses.dataclass
        class Batch:
            tokens: torch.Tensor
            mask: torch.Tensor


        class Masked(torch.nn.Module):
            def forward(self, batch):
                return batch.tokens * batch.mask


        program = onnxplain.export(Masked(), (Batch(torch.ones(3), torch.ones(3)),))  # OXP1008
        ```

        ```python
        import dataclasses

        import torch

        import onnxplain


        @dataclasses.dataclass
        class Batch:
            tokens: torch.Tensor
            mask: torch.Tensor


        class Masked(torch.nn.Module):
            def forward(self, batch):
                return batch.tokens * batch.mask


        torch.export.register_dataclass(Batch)
        program = onnxplain.export(Masked(), (Batch(torch.ones(3), torch.ones(3)),))
        ```
    """

    argument: str
    type: str

    message = "The input '{argument}' has the type '{type}', which torch.export cannot take apart into tensors."


class CaptureFailed(Rule, id="OXP1009", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model could not be captured, for a reason that no other rule tells apart.

    What happened:
        Every capture strategy that was asked for failed. The finding carries the error of the first one; the notes say what the
        others met.

    Why it matters:
        Without a captured graph there is nothing to export.

    How to fix it:
        1. Read the error at the line that it names: it is torch.export's, or that of a strategy of your own.
        2. Run `torch.export.export(model, args)` alone; if it fails in the same way, its documentation and issues are about this
           error.
        3. A strategy of your own has to return an ExportedProgram with the inputs of the model.

    Example:
        ```python
        import torch

        import onnxplain


        class Result:
            def __init__(self, scores):
                self.scores = scores


        class Double(torch.nn.Module):
            def forward(self, x):  # OXP1009
                return Result(x * 2)


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


class ArgumentIgnored(Rule, id="OXP1010", level=Level.NOTE, history=[Added("0.1.0")]):
    """An argument of the export has no effect.

    What happened:
        The argument was given, but another one takes its place, or it only meant something to an exporter that no longer exists.

    Why it matters:
        The result is complete. But who wrote the argument expects something of it, and will not get it.

    How to fix it:
        Leave the argument out, or leave out the one that takes its place.

    Example:
        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3),), do_constant_folding=True)  # OXP1010
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

    argument: str
    reason: str

    message = "The argument '{argument}' has no effect: '{reason}'."


class ConstraintViolated(Rule, id="OXP1011", level=Level.WARNING, history=[Added("0.1.0")]):
    """The model works only for some sizes of a dynamic dim, and `dynamic_shapes` promises more.

    What happened:
        At this line the model relates the dim to another one, to a multiple or to a bound; or it does for the example's size what it
        would not do for others: it takes a branch, splits into so many parts, or keeps a dim that `squeeze` drops when it is 1.
        `dynamic_shapes` says nothing of it: the dim there may have any size of its range.

    Why it matters:
        The model is exported, but for fewer sizes than were asked for: with others it fails or is wrong.

    How to fix it:
        1. State what must hold in `dynamic_shapes`: the same `Dim` for sizes that are equal, `2 * Dim("half")` for a multiple,
           `Dim("n", min=2, max=64)` for a range.
        2. Let torch.export find a relation: `Dim.AUTO` in place of the `Dim`.
        3. Change the line, so that all sizes work: `torch.where` in place of a branch, `squeeze(1)` in place of `squeeze()`.

    Example:
        ```python
        import torch

        import onnxplain


        class Add(torch.nn.Module):
            def forward(self, x, y):
                return x + y  # OXP1011


        shapes = {"x": {0: torch.export.Dim("rows")}, "y": {0: torch.export.Dim("lines")}}
        program = onnxplain.export(Add(), (torch.ones(3, 4), torch.ones(3, 4)), dynamic_shapes=shapes)
        ```

        ```python
        import torch

        import onnxplain


        class Add(torch.nn.Module):
            def forward(self, x, y):
                return x + y


        rows = torch.export.Dim("rows")
        shapes = {"x": {0: rows}, "y": {0: rows}}
        program = onnxplain.export(Add(), (torch.ones(3, 4), torch.ones(3, 4)), dynamic_shapes=shapes)
        ```
    """

    dim: str
    constraint: str

    message = "The dim '{dim}' must satisfy '{constraint}', which dynamic_shapes does not say."


class DimsFixed(Rule, id="OXP1034", level=Level.NOTE, history=[Added("0.1.0")]):
    """Some dims are static although they were to be dynamic where possible, because the model works with one size of them only.

    What happened:
        `dynamic_shapes=True` asks for every dim of every input to be dynamic, and `Dim.AUTO` for one. At this line the model fixes some of
        them: a layer has so many features or channels, a `view` names a number, a loop runs so many times or over so many parts, or
        an input of size 1 is broadcast or squeezed.

    Why it matters:
        These dims have the example's size in the exported model; the others may have any size. Most often that is as it should be.

    How to fix it:
        1. Leave it, if the size is the model's own, such as the number of features that a layer takes.
        2. Write the line without the number: `-1` or `x.shape[i]` in a `view`, an operator on the whole tensor in place of a loop.
        3. Name the dims that matter in `dynamic_shapes`: `onnxplain.export(..., dynamic_shapes={"x": {0: "batch"}})`.

    Example:
        ```python
        import torch

        import onnxplain


        class Rows(torch.nn.Module):
            def forward(self, x):
                return x.view(3, 4) * 2  # OXP1034


        program = onnxplain.export(Rows(), (torch.ones(2, 6),), dynamic_shapes=True)
        ```

        ```python
        import torch

        import onnxplain


        class Rows(torch.nn.Module):
            def forward(self, x):
                return x.flatten() * 2


        program = onnxplain.export(Rows(), (torch.ones(2, 6),), dynamic_shapes=True)
        ```
    """

    sizes: tuple[str, ...]

    message = "The model fixes '{sizes}'."
