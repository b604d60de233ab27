"""Models of installed libraries with random weights: `timm:resnet18`, `torchvision:resnet18`, `hf:LlamaConfig`. Nothing is downloaded."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import fnmatch
import functools
import glob
import importlib
import importlib.util
import inspect
import multiprocessing
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from onnxplain.diagnostics import described_error

from .jobs import LIBRARIES, TriageError

if TYPE_CHECKING:
    import torch

_START = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
"""How to start the process that imports a library. A copy of this one need not import what this one has."""
_EXAMPLES = {"timm": "test_vit", "torchvision": "squeezenet1_1", "hf": "BertConfig"}
"""A small model of each library. To build it imports what most models of the library need."""

_SIZES = (
    *("zepto", "atto", "femto", "pico", "nano", "xxxs", "xxtiny", "xxs", "xtiny", "xs", "micro", "tiny", "ti", "t", "mini", "s"),
    *(
        "little",
        "small",
        "",
        "medium",
        "m",
        "base",
        "b",
        "large",
        "l",
        "h",
        "xl",
        "xlarge",
        "huge",
        "giant",
        "gigantic",
        "enormous",
        "test",
    ),
)
"""Words for sizes in names of models, from the smallest. The empty one is no word. A model for tests is hardly one of a family."""

_LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers")
_REGISTERED = re.compile(r"^@register_model\b[^\n]*\ndef (\w+)\(", re.MULTILINE)
_DEFINITIONS = {"timm": _REGISTERED, "torchvision": _REGISTERED, "hf": re.compile(r"^class (\w+Config)\(", re.MULTILINE)}
"""What defines a model in the source of a library."""

_SMALL: Mapping[str, int] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "hidden_dim", "embedding_size", "word_embed_proj_dim"), 64),
    **dict.fromkeys(_LAYERS, 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner", "ffn_hidden_size"), 128),
    **dict.fromkeys(("num_key_value_heads",), 2),
    **dict.fromkeys(("head_dim", "d_kv", "rotary_dim"), 16),
    **dict.fromkeys(("vocab_size",), 256),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions"), 128),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("image_size",), 32),
    **dict.fromkeys(("patch_size",), 8),
}
"""Settings that make a model small, of those that a config has and that are numbers there."""


@dataclasses.dataclass(frozen=True)
class Built:
    """A model and its example inputs."""

    model: torch.nn.Module
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None
    dynamic_shapes: None = None
    definition: None = None


def names_in(library: str, pattern: str, *, one_per_family: bool = False) -> Mapping[str, str]:
    """The names in a library that match a pattern, sorted, and the family of each. Or of each family one name, of a small model.

    Raises:
        TriageError: The library is not installed or cannot be imported, or no name matches.
    """
    # NOTE: a library whose names are known may be gone from the path since.
    _check_installed(library)
    names = _all_names(library)
    found = {name: family for name, family in names.items() if fnmatch.fnmatchcase(name, pattern)}
    if not found:
        raise _unknown(library, pattern, list(names), "or a pattern, ")
    if not one_per_family:
        return found
    members: dict[str, list[str]] = {}
    for name, family in found.items():
        members.setdefault(family, []).append(name)
    return {smallest(names): family for family, names in members.items()}


def load(library: str, name: str) -> Built:
    """The model `name` of a library, which this process imports.

    Raises:
        TriageError: The library is not installed, or it has no such name. Whatever the library itself raises is raised as well.
    """
    _check_installed(library)
    names = list(_names(library))
    if name not in names:
        hint = f" `onnxplain triage {library}:{name}` exports all models of a pattern." if glob.has_magic(name) else ""
        raise _unknown(library, name, names, hint=hint)
    return build(library, name, {})


def names_without_import(library: str) -> Sequence[str]:
    """The names in a library that its source shows, for which it is not imported; none if it is not installed."""
    spec = importlib.util.find_spec(LIBRARIES[library])
    folders = [pathlib.Path(each, "models") for each in (spec.submodule_search_locations or ())] if spec is not None else []
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    found = {name for file in files for name in _DEFINITIONS[library].findall(file.read_text(encoding="utf-8", errors="replace"))}
    return sorted(found)


def _unknown(library: str, name: str, names: Sequence[str], other: str = "", *, hint: str = "") -> TriageError:
    near = difflib.get_close_matches(name, names, n=1)
    hint = hint or (f" Did you mean {near[0]!r}?" if near else "")
    return TriageError(f"TARGET: expected one of the {len(names)} names of {LIBRARIES[library]}, {other}got {name!r}.{hint}")


def _check_installed(library: str) -> None:
    module = LIBRARIES[library]
    if importlib.util.find_spec(module) is None:
        raise TriageError(f"TARGET: {library}: needs {module}, which is not installed: pip install {module}")


@functools.cache
def _all_names(library: str) -> Mapping[str, str]:
    """All names in a library, with their families.

    The library is imported in a separate process, which then ends: this one needs little memory, and never torch.
    """
    module = LIBRARIES[library]
    context: Any = multiprocessing.get_context(_START)  # typeshed knows no processes of a context that is not known
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_tell, args=(library, there), daemon=True)
    process.start()
    there.close()
    try:
        found: Mapping[str, str] | str = here.recv()
    except EOFError:
        found = "the import ended its process"
    process.join()
    if isinstance(found, str):
        raise TriageError(f"TARGET: {library}: needs {module}, which cannot be imported: {found}")
    return found


def _tell(library: str, connection: Connection) -> None:
    """Sends the names, or why there are none."""
    try:
        connection.send(_names(library))
    except BaseException as error:  # noqa: BLE001  whatever the import raises, or if it ends the process, there are no names
        connection.send(described_error(error))


def build(library: str, name: str, arguments: Mapping[str, Any]) -> Built:
    """The model `name` of a library, in evaluation mode. The arguments go to the function that makes it, or to its config."""
    return _BUILDERS[library](name, dict(arguments))


def example(library: str) -> Built:
    """A small model of a library."""
    return build(library, _EXAMPLES[library], {})


def smallest(names: Iterable[str]) -> str:
    """The name that seems to be that of the smallest model. Libraries tell sizes only once a model is built."""
    return min(names, key=lambda name: (_size(name), [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]))


def _size(name: str) -> int:
    """How large the words of a name call the model."""
    words = re.split(r"[^a-z]+", name.lower())
    return max((_SIZES.index(word) for word in words if word and word in _SIZES), default=_SIZES.index(""))


def _names(library: str) -> dict[str, str]:
    if library == "timm":
        timm = importlib.import_module("timm")
        return {name: _last(timm.model_entrypoint(name).__module__) for name in sorted(timm.list_models())}
    if library == "torchvision":
        models = importlib.import_module("torchvision.models")
        return {name: _last(models.get_model_builder(name).__module__) for name in sorted(models.list_models())}
    transformers = importlib.import_module("transformers")
    names = sorted(name for name in dir(transformers) if name.endswith("Config") and name != "PreTrainedConfig")
    # NOTE: to ask each class would import all models. The modules are named models.bert.configuration_bert.
    modules = getattr(transformers, "_class_to_module", {})
    return {name: (modules.get(name, "").split(".")[1:2] or [name.removesuffix("Config")])[0] for name in names}


def _last(module: str) -> str:
    return module.rpartition(".")[2]


def _timm(name: str, arguments: dict[str, Any]) -> Built:
    import torch

    model = importlib.import_module("timm").create_model(name, pretrained=False, **arguments).eval()
    return Built(model, (torch.zeros(1, *model.default_cfg.get("input_size", (3, 224, 224))),))


def _torchvision(name: str, arguments: dict[str, Any]) -> Built:
    import torch

    make = importlib.import_module("torchvision.models").get_model
    backbone = {} if "weights_backbone" in arguments or "/" in name else _without_backbone(name)
    model = make(name, weights=None, **backbone, **arguments).eval()
    size = (3, 16, 112, 112) if "video" in type(model).__module__ else (3, 224, 224)
    return Built(model, (torch.zeros(1, *size),))


def _without_backbone(name: str) -> dict[str, None]:
    """Keeps a detector from downloading the weights of its backbone."""
    builder = importlib.import_module("torchvision.models").get_model_builder(name)
    return {"weights_backbone": None} if "weights_backbone" in inspect.signature(builder).parameters else {}


def _transformers(name: str, arguments: dict[str, Any]) -> Built:
    config_class = getattr(importlib.import_module("transformers"), name)
    *smaller, largest = _settings(config_class().to_dict())
    for settings in smaller:
        # NOTE: classes of configs and of models have their own checks.
        with contextlib.suppress(Exception):
            return _of_config(config_class(**{**settings, **arguments}))
    return _of_config(config_class(**{**largest, **arguments}))


def _of_config(config: Any) -> Built:
    if hasattr(config, "use_cache"):
        config.use_cache = False
    # NOTE: where several models have one config, the library reads this list, and fails on None.
    config.architectures = config.architectures or []
    model = importlib.import_module("transformers").AutoModel.from_config(config).eval()
    return Built(model, (), dict(_example(model, config)))


def _settings(defaults: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Settings for a small model with such a config, the smallest first."""
    small = _small(defaults)
    # NOTE: models of texts and images have a config for each.
    parts = {key: _small(value) for key, value in defaults.items() if key.endswith("_config") and isinstance(value, dict)}
    if parts:
        yield {**small, **parts}
    yield small
    # NOTE: where a config lists the kinds of its layers, their number must fit the list; widths must fit other settings of some models.
    yield {key: value for key, value in small.items() if key not in _LAYERS}
    yield {key: value for key, value in small.items() if key in _LAYERS}


def _small(defaults: Mapping[str, Any]) -> dict[str, int]:
    """Settings for a small model with such a config."""
    # NOTE: where each stage has its own size, the sizes must fit each other, and such models are small.
    if isinstance(defaults.get("depths"), list):
        return {}
    small = {key: value for key, value in _SMALL.items() if isinstance(defaults.get(key), int)}
    if vocabulary := small.get("vocab_size"):
        tokens = (key for key, value in defaults.items() if key.endswith("token_id") and isinstance(value, int) and value >= vocabulary)
        small |= dict.fromkeys(tokens, 1)
    return small


def _example(model: Any, config: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Example inputs for the main input of a model, and for its decoder."""
    import torch

    ids = torch.arange(16).reshape(2, 8) % getattr(config, "vocab_size", 16)
    main = getattr(model, "main_input_name", "input_ids")
    if main == "pixel_values":
        size, channels = getattr(config, "image_size", 32), getattr(config, "num_channels", 3)
        height, width = size if isinstance(size, list | tuple) else (size, size)
        yield main, torch.zeros(2, channels, height, width)
    elif main == "input_values" and hasattr(config, "num_mel_bins") and hasattr(config, "max_length"):
        yield main, torch.zeros(2, config.max_length, config.num_mel_bins)
    elif main == "input_values":
        yield main, torch.zeros(2, 4000)
    elif main == "input_features" and hasattr(config, "input_feat_per_channel"):
        yield main, torch.zeros(2, 2 * config.max_source_positions, config.input_feat_per_channel)
    elif main == "input_features":
        yield main, torch.zeros(2, getattr(config, "num_mel_bins", 80), 2 * getattr(config, "max_source_positions", 128))
    else:
        yield main, ids
    vision, tokens = getattr(config, "vision_config", None), ("image_token_id", "image_token_index")
    # NOTE: other models take an image only for a token that stands for it.
    if main == "input_ids" and vision is not None and hasattr(vision, "image_size") and not any(hasattr(config, each) for each in tokens):
        yield "pixel_values", torch.zeros(2, getattr(vision, "num_channels", 3), vision.image_size, vision.image_size)
    if getattr(config, "is_encoder_decoder", False):
        yield "decoder_input_ids", ids


_BUILDERS: Mapping[str, Callable[[str, dict[str, Any]], Built]] = {"timm": _timm, "torchvision": _torchvision, "hf": _transformers}
