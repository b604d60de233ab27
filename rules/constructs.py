"""Chapter 1, continued: constructs that torch.export does not take, each by its own name."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class ScriptedModel(Rule, id="OXP1026", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model, or a part of it, is TorchScript.

    What happened:
        `torch.jit.script` or `torch.jit.trace` has compiled a module. torch.export reads Python; of a compiled module there is none left.

    Why it matters:
        Nothing of that part can be captured.

    How to fix it:
        1. Export the eager module: leave `torch.jit.script(...)` out.
        2. If only a file of the compiled module is left, rebuild the module in Python and load its `state_dict`.

    Example:
        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(torch.jit.script(Double()), (torch.ones(3),))  # OXP1026
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

    module: str

    message = "'{module}' is TorchScript, which torch.export cannot look into."


class FakeKernelMissing(Rule, id="OXP1027", level=Level.ERROR, history=[Added("0.1.0")]):
    """A custom operator does not say what it returns without computing it.

    What happened:
        Capture runs the model on tensors without data. A custom operator needs a fake kernel for that: a function that returns an empty
        tensor of the right shape and dtype. This operator has none.

    Why it matters:
        What comes after the operator has no shape, so the capture ends there.

    How to fix it:
        Register one: `@torch.library.register_fake("namespace::name")`. The finding holds one that is made of what the operator returned
        for the example; make its sizes depend on the inputs' where they do.

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

    message = "The custom operator '{operator}' has no fake kernel."


class QuantizedWeights(Rule, id="OXP1028", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model has been quantized in eager mode, and its weights are packed.

    What happened:
        `torch.ao.quantization.quantize_dynamic` and `convert` replace layers by ones that hold their weights in an object of the
        backend, and call operators of that backend. torch.export can take neither apart.

    Why it matters:
        Nothing can be captured, and ONNX has no operators for packed weights.

    How to fix it:
        1. Export the model as it was before, and quantize the ONNX model: `onnxruntime.quantization.quantize_dynamic(path, ...)`.
        2. Quantize with `prepare_pt2e` and `convert_pt2e`: the operators that they write are exported.

    Example:
        ```python
        import warnings

        import torch

        import onnxplain

        warnings.simplefilter("ignore")  # torch.ao.quantization is deprecated
        layers = torch.nn.Sequential(torch.nn.Linear(4, 2)).eval()
        model = torch.ao.quantization.quantize_dynamic(layers, {torch.nn.Linear}, dtype=torch.qint8)  # OXP1028
        program = onnxplain.export(model, (torch.ones(3, 4),))
        ```

        ```python
        import torch

        import onnxplain

        model = torch.nn.Sequential(torch.nn.Linear(4, 2)).eval()
        program = onnxplain.export(model, (torch.ones(3, 4),))
        ```
    """

    module: str

    message = "'{module}' is quantized in eager mode, which torch.export cannot take apart."


class BranchesMismatch(Rule, id="OXP1029", level=Level.ERROR, history=[Added("0.1.0")]):
    """The branches of a control flow operator return what they must not.

    What happened:
        The functions that are given to `torch.cond`, `torch.while_loop` or `scan` must return new tensors, of the same dtypes and numbers
        of dims in each branch. One returns its input, a view of it, or something else than the other one.

    Why it matters:
        What comes after has one dtype and shape, whichever branch has run, and a branch has no effect on anything but its result.

    How to fix it:
        1. Return a copy: `x.clone()` in place of `x` or `x[:2]`.
        2. Make the dtypes equal in all branches: `.to(x.dtype)`.

    Example:
        ```python
        import torch

        import onnxplain


        class Head(torch.nn.Module):
            def forward(self, x):
                return torch.cond(x.sum() > 0, lambda x: x[:2], lambda x: x[:2] * 2, (x,))  # OXP1029


        program = onnxplain.export(Head(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Head(torch.nn.Module):
            def forward(self, x):
                return torch.cond(x.sum() > 0, lambda x: x[:2].clone(), lambda x: x[:2] * 2, (x,))


        program = onnxplain.export(Head(), (torch.ones(3),))
        ```
    """

    problem: str

    message = "The branches of the operator do not go together: '{problem}'."


class PackedSequenceUsed(Rule, id="OXP1030", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model packs sequences of different lengths.

    What happened:
        `pack_padded_sequence` puts the elements of a batch behind each other, without padding. How many elements there are at each step
        depends on the lengths, which are data.

    Why it matters:
        torch.export sees no data, so it does not know the shapes of a packed sequence.

    How to fix it:
        1. Run the layer on the padded batch, and mask what is behind each sequence's end. In a layer of one direction the padding does
           not change what comes before it.
        2. For the last state, pick the step at `lengths - 1`.

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
                packed = pack_padded_sequence(x, lengths, batch_first=True)
                out, _ = self.rnn(packed)  # OXP1030
                return pad_packed_sequence(out, batch_first=True)[0]


        program = onnxplain.export(Encoder(), (torch.ones(2, 5, 3), torch.tensor([5, 3])))
        ```

        ```python
        import torch

        import onnxplain


        class Encoder(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = torch.nn.GRU(3, 4, batch_first=True)

            def forward(self, x, lengths):
                out, _ = self.rnn(x)
                return out * (torch.arange(x.shape[1]) < lengths[:, None])[..., None]


        program = onnxplain.export(Encoder(), (torch.ones(2, 5, 3), torch.tensor([5, 3])))
        ```
    """

    error: str

    message = "A packed sequence has shapes that depend on data: '{error}'."


class SizeLost(Rule, id="OXP1031", level=Level.ERROR, history=[Added("0.1.0")]):
    """An operator makes a size that depends on data, and returns nothing that has it.

    What happened:
        An index with a mask picks as many elements as the mask has true ones; together with an index of integers they are broadcast, and
        the size of the result is that of the other index. torch.export insists that a new size is part of some output.

    Why it matters:
        The capture ends, although the model works in eager mode.

    How to fix it:
        Index with integers only: `mask.nonzero().squeeze(1)` in place of the mask.

    Example:
        ```python
        import torch

        import onnxplain


        class Pick(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("rows", torch.tensor([True, False, True]))

            def forward(self, x):
                return x[self.rows, torch.tensor([0, 1])]  # OXP1031


        program = onnxplain.export(Pick(), (torch.ones(3, 4),))
        ```

        ```python
        import torch

        import onnxplain


        class Pick(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("rows", torch.tensor([0, 2]))

            def forward(self, x):
                return x[self.rows, torch.tensor([0, 1])]


        program = onnxplain.export(Pick(), (torch.ones(3, 4),))
        ```
    """

    expression: str

    message = "The size of something in '{expression}' depends on data and is lost."


class DeviceMismatch(Rule, id="OXP1032", level=Level.ERROR, history=[Added("0.1.0")]):
    """Tensors on different devices meet, or a device is not there.

    What happened:
        The model makes a tensor on a device of its own, such as `torch.zeros(3, device="cuda")`, and computes with it and an input that is
        elsewhere; or this machine has no such device. The model fails in eager mode, too.

    Why it matters:
        There is no graph to export.

    How to fix it:
        1. Make the tensor where the input is: `device=x.device`.
        2. Make it a buffer: `self.register_buffer(...)`; `model.to(device)` moves it.

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

    message = "Tensors are on different devices, or on one that is not there: '{error}'."


class NumpyUsed(Rule, id="OXP1033", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model leaves PyTorch for numpy.

    What happened:
        `.numpy()`, or a function of numpy's, asks for the data of a tensor in `forward`. Capture runs on tensors without data. The strict
        strategy translates common functions of numpy's to PyTorch's; this time it could not, or was not asked.

    Why it matters:
        What numpy computes is no part of a graph.

    How to fix it:
        1. Compute it with PyTorch: `x.abs().amax()` in place of `np.abs(x.numpy()).max()`.
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

    message = "The data of a tensor is needed by numpy in '{expression}'."
