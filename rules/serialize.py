"""Chapter 5: serialize, which checks the ONNX model and writes it to files."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class NeedsExternalData(Rule, id="OXP5001", level=Level.ERROR, history=[Added("0.1.0")]):
    """The model is too large for one ONNX file, but `external_data=False` rules out a second file.

    What happened:
        An ONNX file is one protobuf message, which holds less than 2 GiB. The model with its weights is larger, and
        `external_data=False` asks for a single file.

    Why it matters:
        No program can read such a file, so onnxplain writes none.

    How to fix it:
        1. Leave `external_data` out, or pass `True`: onnxplain then writes the weights to a file beside the model.
        2. Make the weights smaller: call `model.half()` before the export.
        3. If your runtime gets the weights in another way, omit them with `export_params=False`.

    Example:
        ```python
        import torch

        import onnxplain


        class Lookup(torch.nn.Module):
            def __init__(self):
                super().__init__()
                # 2 GiB that take no memory: all elements share one.
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
                # 2 GiB that take no memory: all elements share one.
                self.register_buffer("table", torch.zeros(1).expand(2**29))

            def forward(self, index):
                return self.table[index]


        index = torch.tensor([0, 1])
        # Omits the weights, to save 2 GiB of disk here. `external_data=True` is usually better.
        program = onnxplain.export(Lookup(), (index,), "lookup.onnx", external_data=False, export_params=False)
        ```
    """

    size: int
    limit: int

    message = "The model has '{size}' bytes, but one ONNX file holds at most '{limit}'."
    volatile = ("size",)


class CheckerRejected(Rule, id="OXP5002", level=Level.ERROR, history=[Added("0.1.0")]):
    """The ONNX checker rejects the exported model.

    What happened:
        The ONNX checker compares every node with the schema of its operator. The attributes, the number of inputs, the types or the
        shapes of a node do not fit. The finding points to the line of the model that the node comes from.

    Why it matters:
        Runtimes reject such a model, or interpret it in different ways.

    How to fix it:
        1. If the node comes from your `custom_translation_table`, correct the function: follow the schema of the ONNX operator.
        2. Otherwise this is a bug in a translation of onnxplain: report it, and work around it with your own translation.

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
        The operating system refused to write the file: the folder does not exist, the disk is full, or you lack the permission.

    Why it matters:
        The export worked, but the model was not saved. An earlier file is unharmed, because onnxplain replaces a file only when the
        new one is complete.

    How to fix it:
        1. Create the folder, or export to another one.
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
    """The weights have shapes and dtypes, but no data to write.

    What happened:
        You made the model in fake mode (`enable_fake_mode`) or on the `meta` device, so its weights take no memory and hold no
        numbers.

    Why it matters:
        No runtime could run a file with such weights.

    How to fix it:
        1. Export without a path, add the weights with `program.apply_weights("model.safetensors")`, and save then.
        2. Omit the weights from the file with `export_params=False`, and give them to the runtime in another way.
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

    message = "The weights '{names}' have no data to write."
    volatile = ("names",)


class OpsetUnknown(Rule, id="OXP5005", level=Level.ERROR, history=[Added("0.1.0")]):
    """The installed onnx does not know the opset that you asked for.

    What happened:
        `opset_version` is below 1, or above the newest opset of the installed onnx package.

    Why it matters:
        The opset defines what each operator means. No program could read the model.

    How to fix it:
        1. Leave `opset_version` out: all current runtimes support the default.
        2. To use a newer opset, update onnx: `pip install --upgrade onnx`.

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

    message = "The opset '{asked}' is unknown: onnx '{onnx}' supports the opsets 1 to '{newest}'."
    volatile = ("newest", "onnx")


class OutputReplaced(Rule, id="OXP5006", level=Level.WARNING, history=[Added("0.2.0")]):
    """`onnxplain gate` finds another model at the path that the log names.

    What happened:
        The log records the SHA-256 of each file that the export wrote. The file at that path has another one by now: another export, or
        another program such as a quantizer, wrote it later.

    Why it matters:
        The log describes a model that is no longer there, so its findings say nothing about the file that you would ship.

    How to fix it:
        1. Give each export separate paths for its model and its log.
        2. If a later step changes the model, let it write to another path, or run the gate before it.

    Example:
        Two exports write the same model, and each writes a separate log.

        ```python
        import pathlib

        import torch

        import onnxplain
        from onnxplain.diagnostics import judge_logs
        from onnxplain.rules import OutputReplaced


        class Net(torch.nn.Module):
            def forward(self, x):
                return x * 2


        onnxplain.export(Net(), (torch.ones(3),), "net.onnx", sarif="first.sarif")
        onnxplain.export(Net(), (torch.ones(4),), "net.onnx", sarif="second.sarif")
        verdict = judge_logs([pathlib.Path("first.sarif")], replaced_output=lambda path: OutputReplaced(path=path))  # OXP5006
        ```

        ```python
        import torch

        import onnxplain


        class Net(torch.nn.Module):
            def forward(self, x):
                return x * 2


        program = onnxplain.export(Net(), (torch.ones(3),), "net.onnx", sarif="first.sarif")
        ```
    """

    path: str

    message = "The file '{path}' is not the one that the export wrote."
