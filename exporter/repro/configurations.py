"""Models of libraries that are made from a configuration, such as those of transformers and diffusers, as expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .expression import Expression, Items, Ref, Unknown, call, literal
from .live_objects import is_users

_Write = Callable[[Any], Expression]
_PRIVATE = ("_name_or_path", "transformers_version")
"""Entries of a configuration that a script does not need: names of files on the user's machine, and versions."""


def model_from_configuration(module: torch.nn.Module, write: _Write) -> Expression | None:
    """A call that makes the like of a library's model from its configuration; None for other modules.

    Args:
        module: Any module.
        write: Writes a value of the configuration, or raises `Unknown`.
    """
    # NOTE: attributes of a model's classes may do anything.
    config = None if is_users(type(module)) else getattr(module, "config", None)
    if config is None or not hasattr(module, "save_pretrained"):
        return None
    try:
        if isinstance(config, dict):
            plain = {name: value for name, value in config.items() if not name.startswith("_")}
            return call(Ref(type(module), ".from_config"), write(plain))
        made = call(Ref(type(module)), _configuration(config, write))
    except Unknown:
        # NOTE: the model is written with all that it holds then, like any other.
        return None
    dtypes = {each.dtype for each in module.parameters() if each.is_floating_point()} - {torch.float32}
    if len(dtypes) == 1:
        made = Items(made, (".to(", ")"), (("", literal(dtypes.pop())),))
    return made


def configuration(value: Any, write: _Write) -> Expression | None:
    """A call that makes the like of a configuration of transformers; None for other values. Raises `Unknown`."""
    return _configuration(value, write) if hasattr(value, "to_diff_dict") and not is_users(type(value)) else None


def _configuration(config: Any, write: _Write) -> Expression:
    given = {name: value for name, value in config.to_diff_dict().items() if name not in _PRIVATE}
    attention = getattr(config, "_attn_implementation", None)
    chosen = {"attn_implementation": literal(attention)} if isinstance(attention, str) else {}
    return call(Ref(type(config), ".from_dict"), write(given), keywords=chosen)
