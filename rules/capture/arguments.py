"""Rules about the arguments of an export, inputs included."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class UnsupportedInputType(Rule, id="OXP1008", level=Level.ERROR, history=[Added("0.1.0")]):
    """torch.export cannot take an example input apart into tensors.

    What happened:
        An input can be a tensor, a Python number, string or bool, None, a member of an enum, or a list, tuple or dict of these. It can
        also be an object whose items and attributes are such values, such as a dataclass or a cache of transformers: onnxplain registers
        its class. This input holds something else, such as a module, a generator, a dtype or a sparse tensor, or a copy of it is more
        than its items and attributes.

    Why it matters:
        The inputs of an ONNX model are a flat list of tensors. This input has no place in that list.

    How to fix it:
        1. Leave out what `forward` does not need or can read from an attribute of the model, and pass tensors instead of arrays.
        2. Register the class, with functions that take it apart and rebuild it: `torch.utils._pytree.register_pytree_node`.
        3. Let `forward` take the tensors as parameters and build the object.

    Example:
        ```python
        import numpy
        import torch

        import onnxplain


        class Batch:
            def __init__(self, tokens, mask):
                self.tokens, self.mask = tokens, mask


        class Masked(torch.nn.Module):
            def forward(self, batch):
                return batch.tokens * torch.as_tensor(batch.mask)


        program = onnxplain.export(Masked(), (Batch(torch.ones(3), numpy.ones(3)),))  # OXP1008
        ```

        ```python
        import torch

        import onnxplain


        class Batch:
            def __init__(self, tokens, mask):
                self.tokens, self.mask = tokens, mask


        class Masked(torch.nn.Module):
            def forward(self, batch):
                return batch.tokens * torch.as_tensor(batch.mask)


        program = onnxplain.export(Masked(), (Batch(torch.ones(3), torch.ones(3)),))
        ```
    """

    argument: str
    type: str

    message = "The input '{argument}' has the type '{type}', which torch.export cannot take apart into tensors."


class ArgumentIgnored(Rule, id="OXP1010", level=Level.NOTE, history=[Added("0.1.0")]):
    """An argument of the export has no effect.

    What happened:
        You gave the argument, but another argument replaces it, or only an older exporter understands it.

    Why it matters:
        The exported model is complete, but it ignores what the argument asks for.

    How to fix it:
        Remove the argument, or the one that replaces it.

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


class InputBaked(Rule, id="OXP1012", level=Level.WARNING, history=[Added("0.1.0")]):
    """A Python number, string or enum member among the inputs is a constant in the exported model.

    What happened:
        An example input is a Python int, float, string or member of an enum. The inputs of a graph are tensors, so capture used this
        value as a constant. The value also decided every branch that depends on it.

    Why it matters:
        The exported model has no such input. It always computes with this value.

    How to fix it:
        1. If the number only takes part in arithmetic, pass it as a tensor: `torch.tensor(2)`.
        2. Make an int dynamic: use `Dim.DYNAMIC` for it in `dynamic_shapes`.
        3. If you need only one value, give it to the model's constructor, so that nobody expects an input.

    Example:
        ```python
        import torch

        import onnxplain


        class Scale(torch.nn.Module):
            def forward(self, x, factor):
                return x * factor  # OXP1012


        program = onnxplain.export(Scale(), (torch.ones(3), 2))
        ```

        ```python
        import torch

        import onnxplain


        class Scale(torch.nn.Module):
            def forward(self, x, factor):
                return x * factor


        program = onnxplain.export(Scale(), (torch.ones(3), torch.tensor(2)))
        ```
    """

    name: str
    value: str

    message = "The input '{name}' is the constant '{value}' in the exported model."
    volatile = ("value",)


class InputLeftOut(Rule, id="OXP1013", level=Level.NOTE, history=[Added("0.1.0")]):
    """An input that is None, True or False in the example is not an input of the exported model.

    What happened:
        The example passes None or a bool for this parameter. `forward` ran with that value, and the graph has no input for it.

    Why it matters:
        The exported model always behaves as `forward` does for this value.

    How to fix it:
        1. If every use of the exported model is meant with this value, change nothing. If it is the parameter's default, leave the
           argument out, and the model stays the same. A flag that the model also reads from its configuration, such as `use_cache` of
           transformers, can be set there: `model.config.use_cache = False`.
        2. Always pass a tensor, for example a mask of ones.
        3. Export one model for each value.

    Example:
        ```python
        import torch

        import onnxplain


        class Masked(torch.nn.Module):
            def forward(self, x, mask=None):
                return x if mask is None else x * mask  # OXP1013


        program = onnxplain.export(Masked(), (torch.ones(3), None))
        ```

        ```python
        import torch

        import onnxplain


        class Masked(torch.nn.Module):
            def forward(self, x, mask=None):
                return x if mask is None else x * mask


        program = onnxplain.export(Masked(), (torch.ones(3), torch.ones(3)))
        ```
    """

    name: str
    value: str

    message = "The input '{name}' is always '{value}' in the exported model, which has no such input."
    volatile = ("value",)
