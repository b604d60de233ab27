"""Fixtures that tests share: programs as files on disk, the corpora, and a check of every log."""

from __future__ import annotations

import gc
import importlib.util
import itertools
import json
import os
import pathlib
import pickle
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import filelock
import pytest
from corpora import OWN, SHARED, Corpus, export
from sarif_checks import check_log, fell_back

from onnxplain.diagnostics import DiagnosticContext, Log, Rule, sarif

GOLDEN = pathlib.Path(__file__).parent / "golden"

_LONG = (
    "test_readers.py",
    "test_symbols.py",
    "test_fake.py",
    "test_recipes.py",
    "test_samples.py",
    "test_triage.py",
    "test_warm_workers.py",
)
"""Files of tests that come first: a process that has nothing else left to do would wait for them."""

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts long files of tests first."""
    items.sort(key=lambda item: item.path.name not in _LONG)


def pytest_sessionfinish() -> None:
    """Leaves out of the collections with which pytest ends what is there: they would take ten seconds."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def few_collections() -> Iterator[None]:
    """Collects garbage after each file of tests, and seldom within one: Python's own rhythm takes a tenth of the suite's time."""
    gc.set_threshold(50_000)
    yield
    gc.collect()
    # NOTE: what is alive now, mostly libraries, no later collection looks at.
    gc.freeze()


@pytest.fixture(autouse=True)
def every_log_is_valid(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Checks the last log of every context, as SARIF, whether or not the test writes it.

    A success must not come from another strategy after a failing one, which would hide that: a test with the mark `falls_back` may.
    """
    # NOTE: keyed by the contexts, which it keeps alive: a new context may get the id of a freed one.
    logs: dict[DiagnosticContext, Log] = {}
    real = DiagnosticContext.log

    def recorded(context: DiagnosticContext, **kwargs: Any) -> Log:
        log = logs[context] = real(context, **kwargs)
        return log

    monkeypatch.setattr(DiagnosticContext, "log", recorded)
    yield
    may_fall_back = request.node.get_closest_marker("falls_back") is not None
    for log in logs.values():
        check_log(json.loads(sarif.to_json(log)))
        assert may_fall_back or not fell_back(log)


@pytest.fixture
def load(tmp_path: pathlib.Path) -> Iterator[Callable[..., ModuleType]]:
    """Writes a program to a file and imports it, as a user does."""
    loaded: list[str] = []

    def write_and_import(source: str, name: str = "model") -> ModuleType:
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        # NOTE: TorchDynamo remembers modules by name, so a name serves only once in a process.
        spec = importlib.util.spec_from_file_location(f"{name}_{next(_numbers)}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        loaded.append(spec.name)
        spec.loader.exec_module(module)
        return module

    yield write_and_import
    for name in loaded:
        del sys.modules[name]


@pytest.fixture
def marked(tmp_path: pathlib.Path) -> Callable[[str, str], list[int]]:
    """The numbers of the lines of a loaded program that end with a comment."""

    def find(comment: str, name: str = "model") -> list[int]:
        lines = (tmp_path / f"{name}.py").read_text(encoding="utf-8").splitlines()
        return [number for number, line in enumerate(lines, 1) if line.rstrip().endswith(f"# {comment}")]

    return find


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the rules that a test defines from the book."""
    monkeypatch.setattr(Rule, "_book", dict(Rule._book))


@pytest.fixture(scope="session")
def own_corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Our own corpus, exported."""
    return _exported_once(OWN, tmp_path_factory, "own")


@pytest.fixture(scope="session")
def shared_corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The corpus beside the repository, exported."""
    if not SHARED.exists():
        pytest.skip(f"the shared corpus is not there: {SHARED.name}")
    return _exported_once(SHARED, tmp_path_factory, "shared")


def _exported_once(corpus: pathlib.Path, folders: pytest.TempPathFactory, name: str) -> Corpus:
    """`corpus`, exported by the first process of a test session that needs it."""
    # NOTE: each process of pytest-xdist has its own folder in that of the session.
    in_parallel = "PYTEST_XDIST_WORKER" in os.environ
    folder = folders.getbasetemp().parent if in_parallel else folders.getbasetemp()
    result = folder / f"{name}.pickle"
    with filelock.FileLock(folder / f"{name}.lock"):
        if not result.exists():
            result.write_bytes(pickle.dumps(export(corpus, folder / name)))
        exported: Corpus = pickle.loads(result.read_bytes())
    return exported


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compares a text with a file of `tests/golden`. With UPDATE_GOLDEN set, it writes the file first."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8", newline="\n")
        assert text == path.read_text(encoding="utf-8")

    return check
