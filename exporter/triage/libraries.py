"""Models of installed libraries with random weights: `timm:resnet18`, `torchvision:resnet18`, `hf:LlamaConfig`. Nothing is downloaded."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import difflib
import fnmatch
import functools
import importlib
import importlib.util
import inspect
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .jobs import TriageError

if TYPE_CHECKING:
    import torch

LIBRARIES = {"timm": "timm", "torchvision": "torchvision", "hf": "transformers"}
"""The libraries, by their names in targets, with the modules that they need."""

_SMALL: Mapping[str, int] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "hidden_dim", "embedding_size", "word_embed_proj_dim"), 64),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner", "ffn_hidden_size"), 128),
    **dict.fromkeys(("num_key_value_heads",), 2),
    **dict.fromkeys(("head_dim", "d_kv"), 16),
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


def names_in(library: str, pattern: str) -> Sequence[str]:
    """The names in a library that match a pattern, sorted.

    Raises:
        TriageError: The library is not installed or cannot be imported, or no name matches.
    """
    names = _all_names(library)
    found = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
    if not found:
        near = difflib.get_close_matches(pattern, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise TriageError(f"TARGET: expected one of the {len(names)} names of {LIBRARIES[library]}, or a pattern, got {pattern!r}.{hint}")
    return found


@functools.cache
def _all_names(library: str) -> Sequence[str]:
    """All names in a library. It is imported in a process of its own, which then ends: this one needs little memory, and never torch."""
    module = LIBRARIES[library]
    if importlib.util.find_spec(module) is None:
        raise TriageError(f"TARGET: {library}: needs {module}, which is not installed: pip install {module}")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        try:
            return process.submit(_names, library).result()
        except Exception as error:
            # NOTE: whatever the import raises, or if it ends the process, there are no names.
            raise TriageError(f"TARGET: {library}: needs {module}, which cannot be imported: {error}") from error


def build(library: str, name: str, arguments: Mapping[str, Any]) -> Built:
    """The model `name` of a library, in evaluation mode. The arguments go to the function that makes it, or to its config."""
    return _BUILDERS[library](name, dict(arguments))


def _names(library: str) -> list[str]:
    if library == "timm":
        return sorted(importlib.import_module("timm").list_models())
    if library == "torchvision":
        return sorted(importlib.import_module("torchvision.models").list_models())
    return sorted(name for name in dir(importlib.import_module("transformers")) if name.endswith("Config") and name != "PreTrainedConfig")


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
    library = importlib.import_module("transformers")
    config_class = getattr(library, name)
    config = config_class(**{**_small(config_class().to_dict()), **arguments})
    if hasattr(config, "use_cache"):
        config.use_cache = False
    model = library.AutoModel.from_config(config).eval()
    return Built(model, (), dict(_example(model, config)))


def _small(defaults: Mapping[str, Any]) -> dict[str, int]:
    """Settings for a small model with such a config."""
    # NOTE: where each stage has a size of its own, the sizes must fit each other, and such models are small.
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
    elif main == "input_values":
        yield main, torch.zeros(2, 4000)
    elif main == "input_features":
        yield main, torch.zeros(2, getattr(config, "num_mel_bins", 80), 2 * getattr(config, "max_source_positions", 128))
    else:
        yield main, ids
    if getattr(config, "is_encoder_decoder", False):
        yield "decoder_input_ids", ids


_BUILDERS: Mapping[str, Callable[[str, dict[str, Any]], Built]] = {"timm": _timm, "torchvision": _torchvision, "hf": _transformers}
