"""Chapter 6, verify: what a verification could not compare."""

from __future__ import annotations

from onnxplain.diagnostics import Added, Level, Rule


class NotRun(Rule, id="OXP6005", level=Level.WARNING, history=[Added("0.1.0")]):
    """onnxplain did not compare the exported model with PyTorch, because weights have no data.

    What happened:
        `verify=True` asks for a comparison. You made the model in fake mode or on the `meta` device, so its weights hold no
        numbers, and neither PyTorch nor ONNX Runtime can compute with them.

    Why it matters:
        Nothing verified the export.

    How to fix it:
        1. Leave `verify` out, add the weights with `program.apply_weights(...)`, and run the program.
        2. Verify a small model of the same architecture with real weights.

    Example:
        ```python
        import torch

        import onnxplain

        with onnxplain.enable_fake_mode():
            model = torch.nn.Linear(8, 4)
        program = onnxplain.export(model, (torch.ones(2, 8),), verify=True)  # OXP6005
        ```

        ```python
        import torch

        import onnxplain

        model = torch.nn.Linear(8, 4)
        program = onnxplain.export(model, (torch.ones(2, 8),), verify=True)
        ```
    """

    names: tuple[str, ...]

    message = "The exported model was not compared with PyTorch: the weights '{names}' have no data."


class OutputsNotCompared(Rule, id="OXP6006", level=Level.WARNING, history=[Added("0.2.0")]):
    """onnxplain did not compare some outputs of the exported model with PyTorch.

    What happened:
        `verify=True` runs the exported model in ONNX Runtime and the model in PyTorch, and compares their outputs. Some outputs differ in
        each run, for example because they depend on random numbers, or are nothing but NaN or infinity. All other outputs were compared.

    Why it matters:
        Nothing verified these outputs: they can be wrong although the export succeeded.

    How to fix it:
        1. Draw the random numbers outside the model, and pass them to `forward`.
        2. If the model is in training mode, as with dropout, call `model.eval()` before the export.
        3. If the outputs have no numbers, pass example inputs for which the model computes some.
        4. If the outputs are meant to be random, ignore the rule at this line, `# onnxplain: ignore[OXP6006]`, or name them in
           `assert_exports(random_outputs=...)`.

    Example:
        ```python
        import torch

        import onnxplain


        class Noisy(torch.nn.Module):
            def forward(self, x):
                return x + torch.rand(3)  # OXP6006


        options = onnxplain.DiagnosticOptions(ignore=("OXP1015",))  # the random numbers are meant
        program = onnxplain.export(Noisy(), (torch.ones(3),), verify=True, diagnostic_options=options)
        ```

        ```python
        import torch

        import onnxplain


        class Noisy(torch.nn.Module):
            def forward(self, x, noise):
                return x + noise


        program = onnxplain.export(Noisy(), (torch.ones(3), torch.rand(3)), verify=True)
        ```
    """

    outputs: tuple[str, ...]
    reason: str

    message = "The outputs '{outputs}' were not compared with PyTorch: '{reason}'."


class SizesNotCompared(Rule, id="OXP6014", level=Level.WARNING, history=[Added("0.2.0")]):
    """onnxplain did not compare the exported model with PyTorch at sizes that `verify_sizes` asks for.

    What happened:
        `verify_sizes` (`--verify-sizes`) names sizes of dynamic dims, but the exported model takes no inputs of these sizes: no dim has the
        name, the size is outside of the dim's range, or PyTorch or ONNX Runtime refuses the inputs. The other sizes were compared.

    Why it matters:
        Nothing verified the exported model at these sizes, and it may not run there at all.

    How to fix it:
        1. Ask for sizes that the model takes. The command line lists the dims, and what the model assumes of them, after each export.
        2. If the model should take these sizes, change the line that fixes the size, or the range of the dim in `dynamic_shapes`.

    Example:
        ```python
        import torch

        import onnxplain

        model, shapes = torch.nn.Linear(8, 4), ({0: torch.export.Dim("batch", max=64)},)
        program = onnxplain.export(model, (torch.ones(2, 8),), dynamic_shapes=shapes, verify=True, verify_sizes=[{"batch": 100}])  # OXP6014
        ```

        ```python
        import torch

        import onnxplain

        model, shapes = torch.nn.Linear(8, 4), ({0: torch.export.Dim("batch", max=64)},)
        program = onnxplain.export(model, (torch.ones(2, 8),), dynamic_shapes=shapes, verify=True, verify_sizes=[{"batch": 64}])
        ```
    """

    sizes: tuple[str, ...]
    reason: str

    message = "The exported model was not compared with PyTorch at the sizes '{sizes}': '{reason}'."
