"""Rules about Python code that needs the data in a tensor."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, MeaningChanged, Rule


class DataDependentBranch(Rule, id="OXP1001", level=Level.ERROR, history=[Added("0.1.0")]):
    """A Python branch depends on the data in a tensor.

    What happened:
        A Python `if`, `while`, `assert`, `and` or `or` needs a bool that is computed from a tensor's data. torch.export captures
        one graph for all inputs. It sees shapes and dtypes but no data, so it cannot choose a branch. Where the source and trials show
        that nothing changes, the export rewrites the branch in a copy of the model (OXP1037). Here they do not, or `control_flow` or
        `try_fixes` forbids it: a branch that prints or calls `.item()`, for example, stays. `onnxplain explain OXP1037` tells which code
        can be rewritten.

    Why it matters:
        Every input may take a different branch. A graph with only the example's branch would be silently wrong for other inputs, so
        torch.export refuses.

    How to fix it:
        1. Compute both branches and choose per element with `torch.where(condition, a, b)`.
        2. Keep both branches in the graph with `torch.cond(condition, true_fn, false_fn, operands)`; it becomes an ONNX `If`.
        3. If the condition is the same for every input, store it in the model as a Python bool before the export.

    Example:
        ```python
        import torch

        import onnxplain


        class Flip(torch.nn.Module):
            def forward(self, x):
                if x.sum() < 0:  # OXP1001
                    return -x
                return x


        program = onnxplain.export(Flip(), (torch.ones(3),), control_flow="report")
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
    """A Python number that capture needs depends on the data in a tensor.

    What happened:
        `.item()`, `.tolist()`, `int(t)` or an operator such as `nonzero` turns a tensor's data into a Python number. Python then
        needs its value: for the length of a `range`, for a list index, or for a comparison that decides which operators run. Where the
        source and trials show that nothing changes, the export rewrites a loop or a branch in a copy of the model (OXP1037). Here they
        do not, or `control_flow` or `try_fixes` forbids it.

    Why it matters:
        The graph must hold for all data. Its operators can compute with such a number, but the number of operators cannot depend on
        it.

    How to fix it:
        1. Stay in tensors: a mask (`torch.arange(size) < n`) or a closed form replaces most loops.
        2. If only a bound is missing, state it: `n = t.item(); torch._check(n >= 0); torch._check(n <= x.shape[0])`.
        3. If the number is the same for every input, store it in the model as a Python int before the export. If it comes from a small
           input, let the model hold that: `functools.partial(model, grid_thw=grid_thw)`.

    Example:
        ```python
        import torch

        import onnxplain


        class Grow(torch.nn.Module):
            def forward(self, x, steps):
                for _ in range(steps.item()):  # OXP1002
                    x = x * 2
                return x


        program = onnxplain.export(Grow(), (torch.ones(3), torch.tensor(2)), control_flow="report")
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


class PackedSequenceUsed(
    Rule,
    id="OXP1030",
    level=Level.ERROR,
    history=[Added("0.1.0"), MeaningChanged("0.2.0", "packed sequences are exported where their lengths are in a tensor")],
):
    """The model packs sequences by lengths that are not in a tensor.

    What happened:
        `pack_padded_sequence` stores the elements of a batch one after another, without padding. The number of elements per step
        depends on the lengths, which are data. The exported model runs recurrent layers on the padded batch and on the tensor of lengths.
        Here the lengths are numbers of Python or of numpy, or another strategy than "non-strict" captures the model.

    Why it matters:
        torch.export sees no data, so it does not know these numbers.

    How to fix it:
        1. Pass the lengths as a tensor, and compute them with PyTorch. `lengths.tolist()` and `lengths.numpy()` as the argument itself
           are replaced by the tensor without your help.
        2. Or run the layer on the padded batch, and mask everything behind the end of each sequence. In a layer with one direction,
           padding does not change the results before it. For the last state, pick the step at `lengths - 1`.

    Example:
        ```python
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

        import onnxplain


        class Encoder(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = torch.nn.GRU(3, 4, batch_first=True)

            def forward(self, x, lengths):
                packed = pack_padded_sequence(x, lengths.numpy().clip(1, 5), batch_first=True)  # OXP1030
                out, _ = self.rnn(packed)
                return pad_packed_sequence(out, batch_first=True)[0]


        program = onnxplain.export(Encoder(), (torch.ones(2, 5, 3), torch.tensor([5, 3])))
        ```

        ```python
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

        import onnxplain


        class Encoder(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = torch.nn.GRU(3, 4, batch_first=True)

            def forward(self, x, lengths):
                packed = pack_padded_sequence(x, lengths.clamp(1, 5), batch_first=True)
                out, _ = self.rnn(packed)
                return pad_packed_sequence(out, batch_first=True)[0]


        program = onnxplain.export(Encoder(), (torch.ones(2, 5, 3), torch.tensor([5, 3])))
        ```
    """

    error: str

    message = "A packed sequence has shapes that depend on data: '{error}'."


class SizeLost(Rule, id="OXP1031", level=Level.ERROR, history=[Added("0.1.0")]):
    """An operator makes a size that depends on data, but no output has that size.

    What happened:
        An index with a mask selects the elements where the mask is true. Together with an index of integers, PyTorch
        broadcasts both, and the result has the size of the other index. torch.export requires that some output has the new size.

    Why it matters:
        Capture ends, although the model works in eager mode.

    How to fix it:
        Index with integers only: use `mask.nonzero().squeeze(1)` instead of the mask.

    Example:
        ```python
        import torch

        import onnxplain


        class Pick(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("rows", torch.arange(100) % 50 == 0)

            def forward(self, x):
                return x[self.rows, torch.tensor([0, 1])]  # OXP1031


        program = onnxplain.export(Pick(), (torch.ones(100, 4),))
        ```

        ```python
        import torch

        import onnxplain


        class Pick(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("rows", torch.tensor([0, 50]))

            def forward(self, x):
                return x[self.rows, torch.tensor([0, 1])]


        program = onnxplain.export(Pick(), (torch.ones(100, 4),))
        ```
    """

    expression: str

    message = "A size in '{expression}' depends on data, and no output has that size."


class NumpyUsed(Rule, id="OXP1033", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model uses numpy on the data of a tensor.

    What happened:
        `.numpy()` or a numpy function reads the data of a tensor in `forward`. Capture runs on tensors without data. The strict
        strategy translates common numpy functions to PyTorch; here it could not, or you did not select it.

    Why it matters:
        A graph cannot contain what numpy computes.

    How to fix it:
        1. Compute it with PyTorch: `x.abs().amax()` instead of `np.abs(x.numpy()).max()`.
        2. If it does not depend on the inputs, compute it in `__init__` and register it as a buffer.

    Example:
        ```python
        import numpy as np
        import torch

        import onnxplain


        class Scaled(torch.nn.Module):
            def forward(self, x):
                return x / float(np.abs(x.numpy()).max())  # OXP1033


        program = onnxplain.export(Scaled(), (torch.ones(3),), strategies=("non-strict",))
        ```

        ```python
        import torch

        import onnxplain


        class Scaled(torch.nn.Module):
            def forward(self, x):
                return x / x.abs().amax()


        program = onnxplain.export(Scaled(), (torch.ones(3),), strategies=("non-strict",))
        ```
    """

    expression: str

    message = "numpy needs the data of a tensor in '{expression}'."


class ControlFlowRewritten(Rule, id="OXP1037", level=Level.NOTE, history=[Added("0.2.0")]):
    """The exported model was captured from a copy with a rewritten loop or branch.

    What happened:
        torch.export cannot keep a Python loop over a size, or a branch on data, in a graph. So the export rewrote the lines in a copy of
        the function, as `torch.while_loop`, a scan, `torch.cond`, or operators on all rows at once. No file changed.

        The export rewrites only what it can follow in the source: loops over `range`, over the rows of tensors, over `enumerate` and `zip`
        of these, one within another, and `while`, `if` and conditional expressions on tensors. Their statements set local variables and
        items of local tensors, or append to a list that becomes a tensor by `torch.stack`, `torch.cat` or `sum`; such a list may be a
        comprehension as well, may be filled by `insert(0, y)`, and may be read as `parts[-1]` and `parts[::-1]`. So may a tensor that only
        grows, `y = torch.cat([y, part])`, and a number to which an iteration adds a tensor, as in `loss = 0` with `loss += f(row)`. A list
        that repeats one item, as in `torch.stack([x] * n)`, becomes a repeated tensor, and a list of rows or of a `range`, as in `sum(x)`
        and `torch.tensor(range(n))`, the tensor itself or `torch.arange(n)`. A loop over numbers that only sets rows of tensors, such as
        `y[i] += y[i].sin()`, becomes operators on all rows if each element depends on no other. A loop with `return`, with a `break`
        elsewhere than at the end of the body, or with another call for its effect is not rewritten, and neither is one that sets a variable
        to None or to a tensor of another shape in each iteration. A loop over the places where a mask is true, `for expert in
        hit.nonzero():`, becomes a loop over all places that keeps the results of the chosen ones; it may begin with `if ...: continue`. So
        does code that a branch skips where nothing is selected, as in `if not mask.any(): continue` and `if len(rows) > 0:`: it runs, and
        its results are kept where something is selected. It does not if it puts values at the selected places whose number does not follow
        from the mask: then the branch becomes a torch.cond.

        A loop over blocks of a dim, of which the last one may be shorter, becomes a loop over the other blocks, and the last one follows:
        `for i in range(0, n, 4):` with parts such as `x[i : i + 4]` or `x[i : min(i + 4, n)]`, a count of the blocks such as `range((n + 3)
        // 4)`, and `for part in x.split(4):`. Its results have to go into a list, or into the same part of a tensor. If all of the example
        is one block, the export captures a larger example, and compares the result with the model for yours. Where the loop is not
        rewritten, but the whole size is one block, as in `range(0, n, n)`, its body runs once; a fixed length limits the size (OXP1011).

        A branch on whether a cache fits, as in `if self.mask is None or self.mask.shape[0] != n: self.mask = ...`, fills it in the graph
        instead: what an earlier run left fits its own size only. So does a dict, as in `if n not in self.masks: self.masks[n] = ...`. A
        table for many more sizes than the example's is kept as it is.

        Of a branch with another way for certain sizes, as in `if h == self.height: table = self.table`, the graph has the way for all other
        sizes. Of a branch that takes None for a mask which leaves nothing out, as in `if not padding.any(): padding = None`, it has the way
        with the mask, if the example's mask leaves nothing out.

    Why it matters:
        The source shows that the copy computes the same as your model. It did so for the example, and for negated data with other sizes
        of the dynamic dims, or for as much of that as the model takes. Other inputs were not tried. Of the last two kinds of branches, the
        comparison alone shows it: the example takes the way that the graph lacks, and so do further sizes of those that the branch asks
        for, which are compared as well.

    How to fix it:
        1. To see exactly what is exported, and to export it with other tools, put the code of the note into your file.
        2. To get findings with edits instead, pass `control_flow="report"`.

    Example:
        ```python
        import torch

        import onnxplain


        class Sum(torch.nn.Module):
            def forward(self, x):
                total = torch.zeros_like(x[0])
                for row in x:  # OXP1037
                    total = total * 0.5 + row
                return total


        shapes = ({0: torch.export.Dim("steps")},)
        program = onnxplain.export(Sum(), (torch.ones(3, 2),), dynamic_shapes=shapes)
        ```

        ```python
        import torch

        import onnxplain


        class Sum(torch.nn.Module):
            def forward(self, x):
                steps = x.shape[0]

                def body(step, total):
                    return step + 1, total * 0.5 + x.select(0, step)

                _, total = torch.while_loop(lambda step, total: step < steps, body, (0, torch.zeros_like(x[0])))
                return total


        shapes = ({0: torch.export.Dim("steps")},)
        program = onnxplain.export(Sum(), (torch.ones(3, 2),), dynamic_shapes=shapes)
        ```
    """

    operator: str

    message = "The exported model computes this with '{operator}', from a rewritten copy of the function."
