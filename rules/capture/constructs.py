"""Rules about constructs of PyTorch that torch.export or ONNX does not support as they are."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class SymbolicIgnored(Rule, id="OXP1017", level=Level.WARNING, history=[Added("0.1.0")]):
    """The `symbolic` method of a torch.autograd.Function has no effect.

    What happened:
        The function has a static method `symbolic`, which tells torch.onnx's TorchScript exporter which ONNX operators to write.
        torch.export ignores it and traces the function's `forward`, so the graph has the operators that `forward` calls.

    Why it matters:
        The exported model computes the same, but without the operators that `symbolic` writes, such as a custom operator of a
        runtime.

    How to fix it:
        1. Define an operator with `torch.library.custom_op`, call it, and pass its translation in `custom_translation_table`.
        2. If the operators of `forward` are fine, remove `symbolic`.

    Example:
        ```python
        import torch

        import onnxplain


        class Clip(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clamp(0, 1)

            @staticmethod
            def symbolic(g, x):
                return g.op("my.domain::Clip", x)


        class Net(torch.nn.Module):
            def forward(self, x):
                return Clip.apply(x) * 2  # OXP1017


        program = onnxplain.export(Net(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Clip(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clamp(0, 1)


        class Net(torch.nn.Module):
            def forward(self, x):
                return Clip.apply(x) * 2


        program = onnxplain.export(Net(), (torch.ones(3),))
        ```
    """

    function: str

    message = "The symbolic method of '{function}' has no effect: the exported model has the operators of its forward method."


class ScriptedModel(Rule, id="OXP1026", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model, or a part of it, is TorchScript.

    What happened:
        `torch.jit.script` or `torch.jit.trace` compiled a module. torch.export traces Python code, and a compiled module has none.

    Why it matters:
        torch.export cannot capture that part.

    How to fix it:
        1. Export the eager module: remove `torch.jit.script(...)`.
        2. If you only have a file of the compiled module, rebuild the module in Python and load its `state_dict`.

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

    message = "'{module}' is TorchScript, which torch.export cannot trace."


class QuantizedWeights(Rule, id="OXP1028", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model was quantized in eager mode, so its weights are packed.

    What happened:
        `torch.ao.quantization.quantize_dynamic` and `convert` replace layers with quantized ones. These keep their weights in an
        object of a backend and call operators of that backend. torch.export can handle neither.

    Why it matters:
        torch.export cannot capture the model, and ONNX has no operators for packed weights.

    How to fix it:
        1. Export the original model and quantize the ONNX model: `onnxruntime.quantization.quantize_dynamic(path, ...)`.
        2. Quantize with `prepare_pt2e` and `convert_pt2e`, whose operators onnxplain exports.

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

    message = "'{module}' is quantized in eager mode, and torch.export cannot handle its packed weights."


class ObserverOn(Rule, id="OXP1035", level=Level.ERROR, history=[Added("0.2.0")]):
    """An observer of a model in quantization-aware training still adjusts the ranges.

    What happened:
        `prepare_qat` and `prepare` insert observers. In each call, an observer that is on looks at the values that pass, and adjusts
        the scale and the zero point that follow from them. In quantization-aware training, observers stay on until you turn them off.

    Why it matters:
        The exported model would adjust its scales at inference, and its results would depend on earlier inputs. torch.export cannot
        capture how most observers do it.

    How to fix it:
        1. Turn the observers off: `model.apply(torch.ao.quantization.disable_observer)`. The exported model then has the scales of
           the last call as QuantizeLinear and DequantizeLinear.
        2. If the model comes from `prepare`, whose observers cannot be turned off, export the model before `prepare`.

    Example:
        ```python
        import warnings

        import torch
        from torch.ao.quantization import default_fake_quant

        import onnxplain

        warnings.simplefilter("ignore")  # torch.ao.quantization is deprecated
        model = torch.nn.Sequential(torch.nn.Linear(4, 2), default_fake_quant())
        model(torch.ones(3, 4))
        program = onnxplain.export(model.eval(), (torch.ones(3, 4),))  # OXP1035
        ```

        ```python
        import warnings

        import torch
        from torch.ao.quantization import default_fake_quant, disable_observer

        import onnxplain

        warnings.simplefilter("ignore")  # torch.ao.quantization is deprecated
        model = torch.nn.Sequential(torch.nn.Linear(4, 2), default_fake_quant())
        model(torch.ones(3, 4))
        model.apply(disable_observer)
        program = onnxplain.export(model.eval(), (torch.ones(3, 4),))
        ```
    """

    module: str

    message = "The observer '{module}' is still on."


class VectorSigns(Rule, id="OXP1036", level=Level.WARNING, history=[Added("0.2.0")]):
    """The model uses singular vectors or eigenvectors, whose signs the exported model chooses by itself.

    What happened:
        A singular vector or an eigenvector is only determined up to its sign, a complex one up to its phase; for equal values the basis is
        arbitrary. PyTorch's result depends on the library that computes it. The exported model computes the vectors by another algorithm.

    Why it matters:
        The exported model's vectors may be the opposites of PyTorch's. Results that do not depend on the signs, such as
        `u @ torch.diag(s) @ vh`, are the same.

    How to fix it:
        1. Make the signs unique in the model: for example, multiply each vector by the sign of its sum.
        2. If only the values matter, call `torch.linalg.svdvals` or `torch.linalg.eigvalsh`.
        3. If no result depends on the signs, ignore the finding at this line: `# onnxplain: ignore[OXP1036]`.

    Example:
        ```python
        import torch

        import onnxplain


        class Directions(torch.nn.Module):
            def forward(self, x):
                values, vectors = torch.linalg.eigh(x)  # OXP1036
                return vectors


        program = onnxplain.export(Directions(), (torch.diag(torch.arange(1.0, 4.0)),))
        ```

        ```python
        import torch

        import onnxplain


        class Sizes(torch.nn.Module):
            def forward(self, x):
                return torch.linalg.eigvalsh(x)


        program = onnxplain.export(Sizes(), (torch.diag(torch.arange(1.0, 4.0)),))
        ```
    """

    operator: str

    message = "The vectors of '{operator}' may differ in sign from PyTorch's."


class BranchesMismatch(Rule, id="OXP1029", level=Level.ERROR, history=[Added("0.1.0")]):
    """The branches of a control flow operator return results that do not fit together.

    What happened:
        The functions that you pass to `torch.cond`, `torch.while_loop` or `scan` must return new tensors, with the same dtypes and
        numbers of dims in each branch. One function returns its input or a view of it, or its results differ from those of the
        other function.

    Why it matters:
        The operators behind it need one dtype and one number of dims, whichever branch runs. And a branch must not affect anything
        but its result.

    How to fix it:
        1. Return a copy: `x.clone()` instead of `x` or `x[:2]`.
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

    message = "The branches of the operator do not fit together: '{problem}'."


class DoublePrecision(Rule, id="OXP1040", level=Level.NOTE, history=[Added("0.2.0")]):
    """The model computes in float64.

    What happened:
        A parameter, a constant, an input or a conversion is float64, and what PyTorch computes from it is float64 as well, also where the
        other tensors are float32. The finding counts the operators that compute in float64, and the bytes that float64 weights take more
        than float32 ones.

    Why it matters:
        float64 takes twice the memory of float32, and more time: on most GPUs many times as much. Some runtimes have no float64 kernels.

    How to fix it:
        1. If float32 is precise enough, export `model.float()` with float32 inputs.
        2. If one tensor brings float64 in, such as a numpy array, convert it: `torch.from_numpy(array).float()`.
        3. If you need float64, you need not do anything.

    Example:
        ```python
        import torch

        import onnxplain


        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("scale", torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64))

            def forward(self, x):
                return x * self.scale  # OXP1040


        program = onnxplain.export(Scaled(), (torch.ones(3),))
        ```

        ```python
        import torch

        import onnxplain


        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("scale", torch.tensor([0.5, 1.0, 2.0]))

            def forward(self, x):
                return x * self.scale


        program = onnxplain.export(Scaled(), (torch.ones(3),))
        ```
    """

    kind: str
    name: str
    operators: int
    more: int

    message = "The '{kind}' '{name}' makes '{operators}' operators compute in float64, and float64 weights take '{more}' bytes more."
    volatile = ("name", "operators", "more")
