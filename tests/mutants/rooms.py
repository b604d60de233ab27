"""The rooms: which source files one holds, which tests are its own, and which of its mutants change nothing."""

from __future__ import annotations

import dataclasses
import pathlib

import yaml

from .mutations import Mutant, mutants_of

ROOT = pathlib.Path(__file__).parents[2]
TESTS = ROOT / "tests"

# The root folders, and what they are called once installed.
FOLDERS = {
    "exporter": pathlib.Path("onnxplain"),
    "diagnostics": pathlib.Path("onnxplain/diagnostics"),
    "rules": pathlib.Path("onnxplain/rules"),
    "schemas": pathlib.Path("onnxplain/schemas"),
}

# The files beside the rooms: whoever calls them calls the whole exporter.
_FACE = ("__init__", "api", "dynamo", "outputs", "pipeline", "program", "testing")

# Tests in the folders of other rooms whose subject is the room: listings and plots of the memory are tested by the command, how the command
# of a triage loads models by triages, what a log tells of passes by exports, decompositions, and functions of torch that take dynamic
# sizes, by what they compute, operators of tensors that may be empty with the pass for these, and what keeps exports of several threads
# apart by such exports.
_FURTHER_TESTS = {
    "cli": ("graph_views/test_pictures.py", "triage/test_triage.py"),
    "memory": ("cli/test_memory.py",),
    "ops": ("passes/test_empty_inputs.py",),
    "passes": ("ops/test_parity.py", "ops/test_resizing.py", "capture/test_gradients.py", "face/test_debug_events.py"),
    "torch_internals": (
        "capture/test_behind.py",
        "capture/test_idle_branches.py",
        "capture/test_names_in_models.py",
        "capture/test_sizes_as_numbers.py",
        "capture/test_texts_of_sizes.py",
        "capture/test_gradients.py",
        "ops/test_parity.py",
        "passes",
        "process",
    ),
}


@dataclasses.dataclass(frozen=True)
class Room:
    """A room of the product.

    Attributes:
        name: As in `tests/<name>` or `tests/test_<name>.py`.
        sources: Its source files.
        tests: The folders and files of its tests.
    """

    name: str
    sources: tuple[pathlib.Path, ...]
    tests: tuple[pathlib.Path, ...]

    def mutants(self) -> list[Mutant]:
        """All mutants of the room."""
        return [mutant for source in self.sources for mutant in mutants_of(source)]


def rooms() -> dict[str, Room]:
    """All rooms that have tests, by name."""
    exporter = ROOT / "exporter"
    sources = {folder.name: folder.rglob("*.py") for folder in exporter.iterdir() if folder.is_dir()}
    sources |= {file.stem: iter([file]) for file in exporter.glob("*.py") if file.stem not in _FACE}
    sources |= {name: (ROOT / name).rglob("*.py") for name in FOLDERS if name != "exporter"}
    sources["face"] = (exporter / f"{name}.py" for name in _FACE)
    found = {}
    for name, files in sorted(sources.items()):
        tests = next((each for each in (TESTS / name, TESTS / f"test_{name}.py") if each.exists()), None)
        if tests is not None:
            found[name] = Room(name, tuple(sorted(files)), (tests, *(TESTS / each for each in _FURTHER_TESTS.get(name, ()))))
    return found


def installed(source: pathlib.Path) -> pathlib.Path:
    """Where a source file lies once installed, relative to the folder of all packages."""
    folder, *rest = source.relative_to(ROOT).parts
    return FOLDERS[folder].joinpath(*rest)


@dataclasses.dataclass(frozen=True)
class Equivalent:
    """A mutant that no test can catch, because it changes nothing that a caller sees.

    Attributes:
        file: The source file, from the root.
        line: The first line that it changes.
        mutant: What that line becomes.
        why: Why nobody can tell them apart.
    """

    file: str
    line: str
    mutant: str
    why: str

    def matches(self, mutant: Mutant) -> bool:
        """Whether this is `mutant`. Spaces around the lines do not count."""
        if mutant.path != ROOT / self.file:
            return False
        diff = [line[1:].strip() for line in mutant.diff()]
        return self.line == diff[0] and self.mutant in diff[1:]


def equivalents() -> list[Equivalent]:
    """The entries of equivalent.yaml."""
    return [Equivalent(**entry) for entry in yaml.safe_load((pathlib.Path(__file__).parent / "equivalent.yaml").read_text()) or []]
