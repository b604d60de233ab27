"""Models of the installed transformers, by their configs: small, with inputs that they run with."""

from __future__ import annotations

import pytest
import torch

from onnxplain.triage import load_of_library


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("CLIPConfig", {"input_ids": (2, 8), "pixel_values": (2, 3, 32, 32)}),  # a config for texts and one for images
        ("Speech2TextConfig", {"input_features": (2, 256, 80), "decoder_input_ids": (2, 8)}),  # features after time
        ("ReformerConfig", {"input_ids": (2, 8)}),  # its model refuses another width
    ],
)
def test_models_of_the_installed_transformers_run(name: str, inputs: dict[str, tuple[int, ...]]) -> None:
    pytest.importorskip("transformers")
    built = load_of_library("hf", name)
    given = dict(built.kwargs or {})
    assert {name: tuple(value.shape) for name, value in given.items()} == inputs
    assert sum(each.numel() for each in built.model.parameters()) < 3_000_000
    with torch.no_grad():
        built.model(**given)
