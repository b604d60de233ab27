"""Chapter 5: serialize, which checks the ONNX model and writes it to files."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class NeedsExternalData(Rule, id="OXP5001", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model is too large for one ONNX file, and weights beside the file were ruled out.

    What happened:
        An ONNX file is one protobuf message, which holds less than 2 GiB. The model with its weights is larger, and
        `external_data=False` asks for one file.

    Why it matters:
        Nothing can read such a file, so none is written.

    How to fix it:
        1. Leave `external_data` out, or pass `True`: the weights go into a file beside the model.
        2. Make the weights smaller: `model.half()` before the export.
        3. Leave the weights out with `export_params=False`, if the runtime gets them in another way.

    Example:
        ```python
        import torch

        import onnxplain


        class Lookup(torch.nn.Module):
            def __init__(self):
                super().__init__()
                # 2 GiB on paper only: all elements share one.
                self.register_buffer("table", torch.zeros(1).expand(2**29))

            def forward(self, index):
                return self.table[index]


        index = torch.tensor([0, 1])
        program = onnxplain.export(Lookup(), (index,), "lookup.onnx", external_data=False)  # OXP5001
        ```

        ```python
        import torch

        import onnxplain


        class Lookup(torch.nn.Module):
            def __init__(self):
                super().__init__()
                # 2 GiB on paper only: all elements share one.
                self.register_buffer("table", torch.zeros(1).expand(2**29))

            def forward(self, index):
                return self.table[index]


        index = torch.tensor([0, 1])
        # Without its weights, to write no 2 GiB here; mostly `external_data=True` is the way.
        program = onnxplain.export(Lookup(), (index,), "lookup.onnx", external_data=False, export_params=False)
        ```
    """

    size: int
    limit: int

    message = "The model has '{size}' bytes, but one ONNX file holds at most '{limit}'."
    volatile = ("size",)


class CheckerRejected(Rule, id="OXP5002", level=Level.ERROR, history=[Added("0.1.0")]):
    """The ONNX checker found the exported model to be invalid.

    What happened:
        The ONNX checker compares every node with the operator's schema. A node does not fit: its attributes, its number of
        inputs, its types or its shapes. The finding stands at the line of the model that the node comes from.

    Why it matters:
        Runtimes reject such a model, or read it in different ways.

    How to fix it:
        1. If the node comes from a function of `custom_translation_table`, correct the function by the schema of the ONNX
           operator.
        2. Otherwise it is a bug of the translation: report it, and go around it with a translation of your own.

    Example:
        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        class Flat(torch.nn.Module):
            def forward(self, x):
                return torch.flatten(x)  # OXP5002


        def translate_flatten(x, start_dim=0, end_dim=-1):
            return op.Transpose(x, perm=[0, 7])


        table = {torch.ops.aten.flatten.using_ints: translate_flatten}
        program = onnxplain.export(Flat(), (torch.ones(3, 4),), custom_translation_table=table)
        ```

        ```python
        import torch
        from onnxscript import opset20 as op

        import onnxplain


        class Flat(torch.nn.Module):
            def forward(self, x):
                return torch.flatten(x)


        def translate_flatten(x, start_dim=0, end_dim=-1):
            return op.Reshape(x, [-1])


        table = {torch.ops.aten.flatten.using_ints: translate_flatten}
        program = onnxplain.export(Flat(), (torch.ones(3, 4),), custom_translation_table=table)
        ```
    """

    error: str

    message = "The ONNX checker rejects the model: '{error}'."


class WriteFailed(Rule, id="OXP5003", level=Level.ERROR, history=[Added("0.1.0")]):
    """A file of the exported model could not be written.

    What happened:
        The operating system refused to write the file: the folder does not exist, the disk is full, or the rights are missing.

    Why it matters:
        The model was exported, but it is nowhere. A file that stood there before is unharmed: files are replaced only when they
        are complete.

    How to fix it:
        1. Make the folder, or export to another one.
        2. Export without a path and save later: `program.save(path)`.

    Example:
        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3),), "no_such_folder/double.onnx")  # OXP5003
        ```

        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3),), "double.onnx")
        ```
    """

    path: str
    error: str

    message = "The file '{path}' could not be written: '{error}'."
    volatile = ("path",)


class WeightsWithoutData(Rule, id="OXP5004", level=Level.ERROR, history=[Added("0.1.0")]):
    """Weights have shapes and dtypes, but no data to write.

    What happened:
        The model was made in fake mode (`enable_fake_mode`) or on the `meta` device, so its weights take no memory and hold no numbers.

    Why it matters:
        A file with such weights could not be run.

    How to fix it:
        1. Export without a path, give the weights with `program.apply_weights("model.safetensors")`, and save then.
        2. Leave the weights out of the file with `export_params=False`, and give them to the runtime in another way.
        3. Load the real weights into the model before the export: `model.load_state_dict(torch.load(...), assign=True)`.

    Example:
        ```python
        import pathlib
        import tempfile

        import torch

        import onnxplain

        with torch.device("meta"):
            model = torch.nn.Linear(8, 4)
        path = pathlib.Path(tempfile.mkdtemp()) / "model.onnx"
        program = onnxplain.export(model, (torch.ones(2, 8, device="meta"),), path)  # OXP5004
        ```

        ```python
        import pathlib
        import tempfile

        import torch

        import onnxplain

        with torch.device("meta"):
            model = torch.nn.Linear(8, 4)
        path = pathlib.Path(tempfile.mkdtemp()) / "model.onnx"
        program = onnxplain.export(model, (torch.ones(2, 8, device="meta"),), path, export_params=False)
        ```
    """

    names: tuple[str, ...]

    message = "There is no data to write for the weights '{names}'."
    volatile = ("names",)


class OpsetUnknown(Rule, id="OXP5005", level=Level.ERROR, history=[Added("0.1.0")]):
    """There is no such ONNX opset, as far as the installed onnx knows.

    What happened:
        `opset_version` is lower than 1, or higher than the newest opset of the installed onnx package.

    Why it matters:
        Nobody could read the model: an opset says what each operator means.

    How to fix it:
        1. Leave `opset_version` out: the default is one that all current runtimes have.
        2. For a newer opset, update onnx: `pip install --upgrade onnx`.

    Example:
        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3),), opset_version=99)  # OXP5005
        ```

        ```python
        import torch

        import onnxplain


        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Double(), (torch.ones(3),), opset_version=20)
        ```
    """

    asked: int
    newest: int
    onnx: str

    message = "The opset '{asked}' is unknown: onnx '{onnx}' has those from 1 to '{newest}'."
    volatile = ("newest", "onnx")
