"""JSON Schemas of what onnxplain writes: the profile of SARIF 2.1.0 in its logs, the baseline, and the output of commands as JSON."""

from __future__ import annotations

import importlib.resources
import json
from typing import Any


def load(name: str) -> dict[str, Any]:
    """The schema `name`: `sarif-onnxplain`, `baseline`, `gate` or `rules`. Raises `FileNotFoundError` if there is no such schema."""
    text = importlib.resources.files(__name__).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
