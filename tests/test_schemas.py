"""The JSON Schemas of the files that onnxplain writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest

from onnxplain import schemas


@pytest.mark.parametrize("name", ["sarif-onnxplain", "baseline", "config", "gate", "rules"])
def test_schemas_are_valid_and_closed(name: str) -> None:
    schema = schemas.load(name)
    jsonschema.Draft202012Validator.check_schema(schema)

    def walk(item: Any) -> Iterator[Mapping[str, Any]]:
        if isinstance(item, Mapping):
            yield item
        for value in item.values() if isinstance(item, Mapping) else item if isinstance(item, list) else ():
            yield from walk(value)

    assert all("additionalProperties" in item for item in walk(schema) if item.get("type") == "object")
    assert schema["$id"] == f"{name}.schema.json"


def test_other_names_have_no_schema() -> None:
    with pytest.raises(FileNotFoundError):
        schemas.load("sarif")
