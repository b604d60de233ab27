"""Models of torchvision and transformers, for which stubs stand in: their names, families, sizes and inputs."""

from __future__ import annotations

import importlib.machinery
import pathlib
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import torch

from onnxplain.triage import TriageError, load_of_library, names_in

MODELS = """
from .detection import detector
from .video import clip

BUILDERS = {"detector": detector, "clip": clip}

def list_models():
    return [*BUILDERS]

def get_model_builder(name):
    return BUILDERS[name]

def get_model(name, **options):
    return BUILDERS[name](**options)
"""
BUILDER = """
import torch

class Net(torch.nn.Identity): ...

def {name}({parameters}):
    assert {{*locals().values()}} == {{None}}
    return Net()
"""


@pytest.fixture(autouse=True)
def library(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if "torchvision" in sys.modules:
        pytest.skip("torchvision is imported")
    folder = tmp_path / "torchvision" / "models"
    folder.mkdir(parents=True)
    (tmp_path / "torchvision" / "__init__.py").touch()
    (folder / "__init__.py").write_text(MODELS, encoding="utf-8")
    (folder / "detection.py").write_text(BUILDER.format(name="detector", parameters="weights, weights_backbone='a file'"), encoding="utf-8")
    (folder / "video.py").write_text(BUILDER.format(name="clip", parameters="weights"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]


def test_names_have_the_families_of_their_modules() -> None:
    assert names_in("torchvision", "*") == {"clip": "video", "detector": "detection"}
    with pytest.raises(TriageError, match="2 names"):
        load_of_library("torchvision", "detectors")


def test_models_get_no_weights_and_inputs_of_their_kind() -> None:
    shapes = {name: [tuple(each.shape) for each in load_of_library("torchvision", name).args] for name in ("detector", "clip")}
    assert shapes == {"detector": [(1, 3, 224, 224)], "clip": [(1, 3, 16, 112, 112)]}


class NetConfig:
    """A config of transformers whose model has `layers` of different kinds, if there are any."""

    architectures = None

    def __init__(self, layers: tuple[str, ...] = (), num_layers: int = 12, **options: int) -> None:
        if layers and len(layers) != num_layers:
            raise ValueError
        self.num_layers = num_layers
        heads = {"hidden_size": 768, "num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64}
        self.sizes = {**heads, "vocab_size": 30_000, "pad_token_id": 29_999, "eos_token_id": 2, **options}
        self.use_cache = True

    def to_dict(self) -> dict[str, Any]:
        return {"num_layers": self.num_layers, "name": "net", **self.sizes}


class LayeredConfig(NetConfig):
    def __init__(self, **options: Any) -> None:
        super().__init__(("attention", "convolution", "attention"), **{"num_layers": 3, **options})


class AutoModel(torch.nn.Identity):
    config: NetConfig

    @classmethod
    def from_config(cls, config: NetConfig) -> AutoModel:
        model = cls()
        model.config = config
        return model


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    stub: Any = types.ModuleType("transformers")
    stub.__spec__ = importlib.machinery.ModuleSpec("transformers", None)
    stub.NetConfig, stub.LayeredConfig, stub.AutoModel = NetConfig, LayeredConfig, AutoModel
    monkeypatch.setitem(sys.modules, "transformers", stub)


@pytest.mark.usefixtures("transformers")
@pytest.mark.parametrize(("name", "layers"), [("NetConfig", 2), ("LayeredConfig", 3)])
def test_models_of_transformers_are_small(name: str, layers: int) -> None:
    built = load_of_library("hf", name)
    config: Any = built.model.config
    width, heads, shared, size = (
        config.sizes.pop(each) for each in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim")
    )
    assert (width, heads % shared) == (heads * size, 0)
    assert config.sizes == {"vocab_size": 256, "pad_token_id": 1, "eos_token_id": 2}
    assert (config.num_layers, config.use_cache) == (layers, False)
    assert {name: tuple(value.shape) for name, value in (built.kwargs or {}).items()} == {"input_ids": (2, 8)}


@pytest.mark.usefixtures("transformers")
@pytest.mark.parametrize(
    ("main", "shape"), [("pixel_values", (2, 3, 32, 32)), ("input_values", (2, 4000)), ("input_features", (2, 80, 256))]
)
def test_inputs_of_transformers_are_those_of_the_main_input(monkeypatch: pytest.MonkeyPatch, main: str, shape: tuple[int, ...]) -> None:
    monkeypatch.setattr(AutoModel, "main_input_name", main, raising=False)
    given = load_of_library("hf", "NetConfig").kwargs or {}
    assert {name: tuple(value.shape) for name, value in given.items()} == {main: shape}


@pytest.mark.usefixtures("transformers")
@pytest.mark.parametrize(
    ("options", "images"),
    [({}, [(2, 1, 24, 24)]), ({"image_token_id": 5}, []), ({"image_token_index": 5}, [])],
)
def test_a_model_of_texts_and_images_gets_both_unless_a_token_stands_for_an_image(
    options: dict[str, int], images: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in options.items():
        monkeypatch.setattr(NetConfig, name, value, raising=False)
    monkeypatch.setattr(NetConfig, "vision_config", types.SimpleNamespace(image_size=24, num_channels=1), raising=False)
    given = load_of_library("hf", "NetConfig").kwargs or {}
    assert given.keys() <= {"input_ids", "pixel_values"}
    assert [tuple(value.shape) for name, value in given.items() if name == "pixel_values"] == images


def test_a_model_of_timm_without_a_size_gets_images(monkeypatch: pytest.MonkeyPatch) -> None:
    class Net(torch.nn.Identity):
        default_cfg: Mapping[str, Any] = {}

    stub: Any = types.ModuleType("timm")
    stub.__spec__ = importlib.machinery.ModuleSpec("timm", None)
    stub.create_model = lambda *_, **__: Net()
    stub.list_models, stub.model_entrypoint = lambda: ["net"], lambda _: Net
    monkeypatch.setitem(sys.modules, "timm", stub)
    assert [tuple(each.shape) for each in load_of_library("timm", "net").args] == [(1, 3, 224, 224)]
