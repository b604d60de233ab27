"""Rules about the sizes of dims: which are dynamic, and what the model assumes about them."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class SpecializedDynamicDim(Rule, id="OXP1003", level=Level.ERROR, history=[Added("0.1.0")]):
    """You asked for a dynamic dim, but the model fixes its size.

    What happened:
        `dynamic_shapes` asks for a dynamic dim, but this line needs the dim's size as a Python number: as the length of a `range`,
        as a dict key, or next to a constant such as the `3` in a `view`. Or the example has size 1 there, and the line broadcasts or
        squeezes the dim. The graph then holds only for the example's size. Where the source and trials show that nothing
        changes, the export rewrites a loop over the dim in a copy of the model (OXP1037). Here they do not, or `control_flow` or
        `try_fixes` forbids it. The constant need not be on this line: a mask of 8 by 8 that an earlier line made fixes the length where
        it is used.

    Why it matters:
        The exported model would reject other sizes, or compute wrong results for them.

    How to fix it:
        1. Write the line without the size as a number: replace a `for` over the dim with one operator on the whole tensor, and a
           constant in `view` or `reshape`, or in the line that makes a mask, with `-1` or `x.shape[i]`.
        2. If the example has size 1, use an example with another size.
        3. If the size is meant to be fixed, remove the dim from `dynamic_shapes`.

    Example:
        ```python
        import torch

        import onnxplain


        class Halves(torch.nn.Module):
            def forward(self, x):
                return x.reshape(3, 2, 2)  # OXP1003


        batch = torch.export.Dim("batch")
        program = onnxplain.export(Halves(), (torch.ones(3, 4),), dynamic_shapes={"x": {0: batch}})
        ```

        ```python
        import torch

        import onnxplain


        class Halves(torch.nn.Module):
            def forward(self, x):
                return x.reshape(-1, 2, 2)


        batch = torch.export.Dim("batch")
        program = onnxplain.export(Halves(), (torch.ones(3, 4),), dynamic_shapes={"x": {0: batch}})
        ```
    """

    dim: str
    value: int

    message = "The dim '{dim}' should be dynamic, but the model fixes it to '{value}'."
    volatile = ("value",)


class DynamicShapesMismatch(Rule, id="OXP1004", level=Level.ERROR, history=[Added("0.1.0")]):
    """The structure of `dynamic_shapes` differs from that of the inputs.

    What happened:
        `dynamic_shapes` must mirror the inputs: a dict with the parameter names of `forward`, or a tuple with one entry per
        parameter, and inside each entry one entry per tensor. Yours has other names, another length or another nesting. Or the entry
        of a dim is not one (a name, a `Dim`, a hint such as `Dim.DYNAMIC`, its size, None), or one name stands for different sizes.
        `dynamic_axes` must have the names of inputs, and for each a dict `{axis: name}` or a list of axes.

    Why it matters:
        onnxplain cannot tell which dims you mean, so it exports nothing.

    How to fix it:
        1. Use the parameter names of `forward`, not those of `input_names`; in `dynamic_axes`, those of `input_names` where you give them.
        2. Name every parameter; `None` stands for a parameter without dynamic dims.
        3. Mirror the lists, tuples and dicts of tensors inside an input.
        4. Give dims of different sizes different names.

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

    message = "The dynamic shapes do not match the inputs: expected '{expected}', got '{actual}'."


class ConstraintViolated(Rule, id="OXP1011", level=Level.WARNING, history=[Added("0.1.0")]):
    """The model works only for some sizes of a dynamic dim, but `dynamic_shapes` allows more.

    What happened:
        This line relates the dim to another dim, a multiple or a bound. Or it does something for the example's size that it would
        not do for every size: it takes a branch, splits into a number of parts, or keeps a dim that `squeeze` drops when its size
        is 1. `dynamic_shapes` does not state this: it allows every size in the dim's range.

    Why it matters:
        For some sizes that `dynamic_shapes` allows, the exported model fails or is wrong.

    How to fix it:
        1. State the condition in `dynamic_shapes`: the same `Dim` for equal sizes, `2 * Dim("half")` for a multiple,
           `Dim("n") + 1` for a dim that is longer by one, `Dim("n", min=2, max=64)` for a range.
        2. Let torch.export find the relation: use `Dim.AUTO` instead of the `Dim`.
        3. Change the line so that it works for all sizes: `torch.where` instead of a branch, `squeeze(1)` instead of `squeeze()`.

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

    message = "The dim '{dim}' must satisfy '{constraint}', which dynamic_shapes does not state."


class SizesRequired(Rule, id="OXP1041", level=Level.NOTE, history=[Added("0.2.0")]):
    """The model works only for some sizes of a dim that has no range in `dynamic_shapes`.

    What happened:
        `dynamic_shapes` gives the dim a name or `Dim.DYNAMIC`, which says that its size varies but not which sizes it has. This line
        works only for some of them: a `view` divides the size by a number, a table has a certain number of rows, or the size
        has to fit that of another dim.

    Why it matters:
        The exported model has the same condition. With other sizes PyTorch stops with an error; the exported model stops too, or
        returns a wrong result.

    How to fix it:
        1. If the dim always has such a size, ignore this finding.
        2. State the condition in `dynamic_shapes`: `2 * Dim("half")` for a multiple, `Dim("n", max=512)` for a range. Then the log
           contains no note, and the name of the dim in the model tells the multiple.
        3. Rewrite the line so that it works for all sizes, for example by padding to the next multiple.

    Example:
        ```python
        import torch

        import onnxplain


        class Pairs(torch.nn.Module):
            def forward(self, x):
                return x.view(-1, 2, 3).sum(1)  # OXP1041


        program = onnxplain.export(Pairs(), (torch.ones(4, 3),), dynamic_shapes={"x": {0: "rows"}})
        ```

        ```python
        import torch

        import onnxplain


        class Pairs(torch.nn.Module):
            def forward(self, x):
                return x.view(-1, 2, 3).sum(1)


        pairs = torch.export.Dim("pairs")
        program = onnxplain.export(Pairs(), (torch.ones(4, 3),), dynamic_shapes={"x": {0: 2 * pairs}})
        ```
    """

    dim: str
    constraint: str

    message = "The dim '{dim}' must satisfy '{constraint}' on this line."


class LegacyDynamicAxes(Rule, id="OXP1024", level=Level.NOTE, history=[Added("0.1.0")]):
    """You used the argument `dynamic_axes`, which `dynamic_shapes` replaces.

    What happened:
        `dynamic_axes` names axes by the ONNX names of inputs and outputs. onnxplain turned it into `dynamic_shapes`, which mirrors
        the inputs.

    Why it matters:
        The export is complete. But torch.onnx no longer recommends the argument, and `dynamic_shapes` can express more, such as
        equal sizes and bounds.

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

    message = "The argument dynamic_axes names axes of '{inputs}'; dynamic_shapes replaces it."


class ExampleOfSizeOne(Rule, id="OXP1025", level=Level.NOTE, history=[Added("0.1.0")]):
    """A dynamic dim has size 1 in the example.

    What happened:
        `dynamic_shapes` asks for a dynamic dim, but the example input has one element along it. Size 1 is special in PyTorch: it
        broadcasts, it is contiguous in any order, and it may take branches that no other size takes.

    Why it matters:
        onnxplain captures the model without drawing conclusions from the 1. But `verify` compares only this size, and nothing
        reveals a model that broadcasts by accident.

    How to fix it:
        Use an example with at least 2 elements along dynamic dims: `torch.randn(2, 8)`.

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

    message = "The example has size 1 in the dynamic dims '{dims}'."


class DimsFixed(Rule, id="OXP1034", level=Level.NOTE, history=[Added("0.1.0")]):
    """Some dims are static because the model works only with the example's size.

    What happened:
        `dynamic_shapes=True` makes every dim of every input dynamic where possible, and `Dim.AUTO` does so for one dim. This line
        fixes some of them: a layer has a certain number of features or channels, a `view` contains a number, a loop runs a certain
        number of times or over a number of parts, or the line broadcasts or squeezes an input of size 1.

    Why it matters:
        In the exported model these dims have the example's size; the others may have any size. This is usually what you want.

    How to fix it:
        1. If the size belongs to the model, such as a layer's number of features, ignore this finding.
        2. Write the line without the number: `-1` or `x.shape[i]` in a `view`, or one operator on the whole tensor instead of a
           loop.
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
