"""A case of the corpus, with the expectations in its docstring and its marks."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import json
import pathlib
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

STAGES = {
    "inputs": {"open", "capture", "build"},
    "capture": {"capture"},
    "dynamic-shapes": {"capture", "build"},
    "passes": {"capture", "passes"},
    "dispatch": {"passes", "dispatch"},
    "translation": {"passes", "dispatch", "build"},
    "serialization": {"capture", "build", "serialize"},
    "runtime-load": {"build", "serialize", "verify"},
    "numerical": {"dispatch", "build", "verify"},
}
"""Our stages that may report for a stage of the corpus. Several of ours check, for example, what the corpus calls inputs."""

_A_WARNING = re.compile(r"\bwarning that .* is right")
_STUB = "tvstub"
"""What some cases import so that transformers finds no torchvision: without one, there is nothing to do."""
_IMPORT = re.compile(r"^\s*(?:import|from) (\w+)", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Case:
    """The facts about a case before it runs.

    Attributes:
        path: Its module.
        expect: The expected outcome of a good exporter: error, warning, note or ok.
        stages: Our stages that may report it; empty if all may.
        lines: The lines to blame.
        a_right_export_counts: Whether an export that is right counts where a finding is expected: that of torch.onnx.export cannot be
            loaded or gives wrong numbers, as recorded in the folder, or the folder records nothing.
        warning_is_right: Whether the case calls a warning true although it expects none.
        needs: The packages that it imports and that are not installed.
    """

    path: pathlib.Path
    expect: str
    stages: frozenset[str]
    lines: frozenset[int]
    a_right_export_counts: bool = False
    warning_is_right: bool = False
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.path.stem.removeprefix("case_")


def read(path: pathlib.Path) -> Case:
    """Reads a case without importing it."""
    source = path.read_text(encoding="utf-8")
    facts = dict(line.split(": ", 1) for line in source.split('"""')[1].splitlines() if ": " in line)
    lines = frozenset(number for number, line in enumerate(source.splitlines(), 1) if "# BLAME" in line)
    return Case(
        path,
        facts["expect"],
        frozenset(STAGES.get(facts.get("stage", ""), ())),
        lines,
        (recorded := _recorded_as_wrong(path.parent)) is None or path.name in recorded,
        facts["expect"] == "ok" and _A_WARNING.search(facts.get("fix", "")) is not None,
        tuple(_missing(source, path.parent)),
    )


def _missing(source: str, folder: pathlib.Path) -> Iterator[str]:
    """The packages that `source` imports, and that neither the environment nor `folder` has."""
    for name in dict.fromkeys(_IMPORT.findall(source)):
        if name != _STUB and importlib.util.find_spec(name) is None and not (folder / f"{name}.py").exists():
            yield name


@functools.cache
def _recorded_as_wrong(folder: pathlib.Path) -> frozenset[str] | None:
    results = folder / "torch_2_13.json"
    if not results.exists():
        return None
    records = json.loads(results.read_text(encoding="utf-8"))

    def wrong(record: dict[str, Any]) -> bool:
        told = (record.get("ort_load", "ok"), record.get("same_input", "ok"), *record.get("second_input", ()))
        return record["outcome"] == "exported" and any(each != "ok" for each in told)

    return frozenset(record["case"] for record in records if wrong(record))


def load(path: pathlib.Path) -> ModuleType:
    """Imports a case."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    if _STUB not in sys.modules and importlib.util.find_spec(_STUB) is None:
        stub = sys.modules[_STUB] = ModuleType(_STUB)
        stub.allow = lambda: None  # type: ignore[attr-defined]  # a module that is made has no attributes of its own
    spec.loader.exec_module(module)
    return module


def build(module: ModuleType) -> tuple[Any, tuple[Any, ...], dict[str, Any], dict[str, Any]]:
    """The model, args, kwargs and the export's keywords."""
    model, args, kwargs, options = module.build()
    return model, args, kwargs, options
