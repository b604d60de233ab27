"""What passes between the parts of a triage: the models, how to export them, within which limits, and how their processes ended."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from onnxplain.diagnostics import DiagnosticOptions, SarifProfile

LIBRARIES = {"timm": "timm", "torchvision": "torchvision", "hf": "transformers"}
"""The libraries, by their names in targets, with the modules that they need."""


class TriageError(Exception):
    """A triage cannot begin or go on; the message says why."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """How to export a model. The attributes are arguments of `onnxplain.export`, and `settings` a sentence on each for the log.

    Only those that a file or a variable sets have a sentence, which tells where. The others are in the command line.
    """

    opset: int | None = None
    strategies: tuple[str, ...] = ("non-strict", "strict", "draft")
    optimize: bool = True
    verify: bool = False
    try_fixes: bool = True
    control_flow: Literal["rewrite", "libraries", "report"] = "rewrite"
    sarif_profile: SarifProfile = "full"
    repro: bool = False
    diagnostics: DiagnosticOptions = dataclasses.field(default_factory=DiagnosticOptions)
    settings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Model:
    """A model to export.

    Attributes:
        name: Its name in logs, which no other model of the triage has.
        file: The name of its files, without a suffix. No other model has it, whatever the case of its letters.
        family: What it has in common with similar models: the family that its library tells, else its file or module.
        source: A Python file, a module, or one of the `LIBRARIES`.
        attribute: What to load from there.
        arguments: What to call it with, as JSON.
        dynamic: Whether every dim is dynamic.
        options: How to export it.
    """

    name: str
    file: str
    family: str
    source: str
    attribute: str
    arguments: Mapping[str, Any]
    dynamic: bool
    options: Options

    @property
    def is_of_library(self) -> bool:
        """Whether the code of a library makes it. Else code of the user does."""
        return self.source in LIBRARIES


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one model may use: seconds of wall-clock time, and bytes of memory (None where the system does not tell it)."""

    seconds: float
    memory: int | None


class Loaded(Protocol):
    """A model and its example inputs. The attributes are arguments of `onnxplain.export`."""

    @property
    def model(self) -> Any: ...  # noqa: D102  the class describes them
    @property
    def args(self) -> Any: ...  # noqa: D102  as above
    @property
    def kwargs(self) -> Any: ...  # noqa: D102  as above
    @property
    def dynamic_shapes(self) -> Any: ...  # noqa: D102  as above
    @property
    def definition(self) -> Any: ...  # noqa: D102  as above


Loader = Callable[[str, str, Mapping[str, Any]], Loaded]
"""Loads a model: `(source, attribute, arguments)`."""


@dataclasses.dataclass(frozen=True)
class Files:
    """The files of a model, all absolute: a model may change the current folder.

    Attributes:
        log: The SARIF log.
        output: What it prints.
        facts: What its worker tells about it.
        repro: A script that fails alike, if one is asked for.
    """

    log: pathlib.Path
    output: pathlib.Path
    facts: pathlib.Path
    repro: pathlib.Path


@dataclasses.dataclass(frozen=True)
class Job:
    """A model with its files."""

    model: Model
    files: Files


Cause = Literal["exit", "signal", "the time limit", "the memory limit", "the end of its parent process"]


@dataclasses.dataclass(frozen=True)
class Ended:
    """How the process of a model ended.

    Attributes:
        name: The name of the model.
        cause: What ended it.
        number: The exit code or the signal, where one of them is the cause.
        seconds: How long it ran; 0 if unknown.
        memory: The most memory that it used, in bytes; 0 if unknown.
    """

    name: str
    cause: Cause
    number: int = 0
    seconds: float = 0.0
    memory: int = 0
