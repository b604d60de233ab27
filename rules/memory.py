"""Chapter 7: memory, which the activations of the exported model take."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class BroadcastCollapsed(Rule, id="OXP7001", level=Level.WARNING, history=[Added("0.2.0")]):
    """Broadcasting makes a tensor that takes most of the memory, and a reduction soon collapses it.

    What happened:
        An operator broadcasts small tensors to a large one, or repeats one (`expand`, `repeat`, `tile`). Elementwise operators follow, and
        reductions such as `sum`, `std`, `max` and `argmin` remove dims again. Other operators do so as well, such as `torch.cdist` with
        `p=1`. The large tensor is at least eight times larger than what it is made of and than what is left of it. Without it, a run of
        the exported model would take less than half of the memory, weights and inputs included. Both are estimated from the shapes of the
        example inputs. Tensors below 64 MiB do not count: ONNX Runtime itself takes as much.

    Why it matters:
        ONNX Runtime computes one operator after the other, so the large tensor is in memory as a whole, often twice. The model may fail
        with larger inputs, although its result is small.

    How to fix it:
        1. Export with `optimize="memory"`: the exported model computes the tensor in chunks, and reduces each at once. That needs a dim
           that all reductions keep, or a single reduction of several dims. The fix of the finding tells whether it can be done.
        2. Use an operator that needs no large tensor, such as `torch.cdist`, `torch.matmul` or `torch.einsum`.
        3. If your inputs are smaller than the example, ignore the finding with a comment at the line.

    Example:
        ```python
        import torch

        import onnxplain


        class Near(torch.nn.Module):
            def forward(self, x, y):
                distance = x[:, :, None] - y[:, None, :]  # OXP7001
                return (distance.abs() < 1).sum(dim=0)


        program = onnxplain.export(Near(), (torch.ones(256, 400), torch.ones(256, 400)))
        ```

        ```python
        import torch

        import onnxplain


        class Near(torch.nn.Module):
            def forward(self, x, y):
                distance = x[:, :, None] - y[:, None, :]
                return (distance.abs() < 1).sum(dim=0)


        program = onnxplain.export(Near(), (torch.ones(256, 20), torch.ones(256, 20)))
        ```
    """

    shape: str
    size: str
    peak: str
    reduction: str

    message = "The tensor '{shape}' takes '{size}', of '{peak}' at the peak, until '{reduction}' collapses it."
    volatile = ("shape", "size", "peak")


class ComputedInChunks(Rule, id="OXP7002", level=Level.NOTE, history=[Added("0.2.0")]):
    """A large tensor is computed in chunks, as `optimize="memory"` asks.

    What happened:
        Broadcasting makes a tensor that a reduction soon collapses, or an attention has a score for each pair of positions. The exported
        model computes the tensor in chunks, in an ONNX `Scan`, and reduces each chunk at once: chunks of about 2 MiB, or of an attention
        8 MiB and at least 128 rows. An attention is computed in chunks where the peak falls by a quarter, or where its length is dynamic.

    Why it matters:
        The model takes less memory. The estimated peaks are those of the whole model for the sizes of the example inputs, before and
        after the rewriting. A run may take a little longer: a long attention about as long as before, one of many heads with fewer than
        1,000 positions up to 1.5 times. Sums of floats are added in another order where the chunks cut a dim that the reduction removes.

    How to fix it:
        1. There is nothing to fix. To keep the large tensor, export with `optimize=True`.

    Example:
        ```python
        import torch

        import onnxplain


        class Near(torch.nn.Module):
            def forward(self, x, y):
                distance = x[:, :, None] - y[:, None, :]  # OXP7002
                return (distance.abs() < 1).sum(dim=0)


        program = onnxplain.export(Near(), (torch.ones(256, 400), torch.ones(256, 400)), optimize="memory")
        ```

        ```python
        import torch

        import onnxplain


        class Near(torch.nn.Module):
            def forward(self, x, y):
                distance = x[:, :, None] - y[:, None, :]
                return (distance.abs() < 1).sum(dim=0)


        program = onnxplain.export(Near(), (torch.ones(256, 20), torch.ones(256, 20)), optimize="memory")
        ```
    """

    shape: str
    before: str
    after: str

    message = "The tensor '{shape}' is computed in chunks: the estimated peak falls from '{before}' to '{after}'."
    volatile = ("shape", "before", "after")
