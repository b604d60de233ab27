"""JSON Schemas of the files that onnxplain writes: its logs, a closed profile of SARIF 2.1.0; the baseline; the JSON output of commands.

Also of the settings in pyproject.toml, which it reads.
"""

from __future__ import annotations

import importlib.resources
import json
from typing import Any


def load(name: str) -> dict[str, Any]:
    """The schema `name`: `sarif-onnxplain`, `baseline`, `config`, `gate` or `rules`. Raises `FileNotFoundError` for any other name."""
    text = importlib.resources.files(__name__).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
