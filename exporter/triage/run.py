"""A triage from its models to its report. It exports only what has changed, and keeps each verdict as soon as it is there."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence

from onnxplain.diagnostics import graphs_folder

from . import freshness, merged
from .clusters import Cluster, clusters
from .folder import Folder
from .freshness import Facts
from .jobs import Ended, Job, Limits, Model
from .state import Known, State
from .verdicts import Verdict, conclude

SCRIPTS = 10
"""Causes that get scripts."""

Engine = Callable[[Sequence[Job], Limits], Iterator[Ended]]
"""Runs jobs, and yields how each ended."""


@dataclasses.dataclass(frozen=True)
class Triaged:
    """What a triage found.

    Attributes:
        models: The models.
        verdicts: One for each model, in the order of the models.
        exported_now: How many of them this run made; those of the others are still valid.
        clusters: The causes, those that block the most models first.
        flaky: The models and fingerprints of failing findings that come and go.
        merged: The files with the logs of all models.
        scripts: For the first causes, scripts that fail alike by their models (`Cluster.first`), if they are asked for.
    """

    models: tuple[Model, ...]
    verdicts: tuple[Verdict, ...]
    exported_now: int
    clusters: tuple[Cluster, ...]
    flaky: frozenset[tuple[str, str]]
    merged: tuple[pathlib.Path, ...]
    scripts: Mapping[str, pathlib.Path]

    @property
    def succeeded(self) -> bool:
        """True if every model was exported."""
        return all(verdict.outcome == "exported" for verdict in self.verdicts)


@dataclasses.dataclass(frozen=True)
class Triage:
    """What to triage, and how.

    Attributes:
        models: The models.
        folder: Where everything goes.
        limits: What each model may use.
        engine: What runs the exports.
        command_line: The command, for the logs.
        again: Whether models that have not changed are exported as well.
        repro: Whether the first causes get scripts that fail alike.
    """

    models: Sequence[Model]
    folder: pathlib.Path
    limits: Limits
    engine: Engine
    command_line: str
    again: bool = False
    repro: bool = False

    def run(self, told: Callable[[Verdict], None]) -> Triaged:
        """Exports the models that have changed. Calls `told` with the verdict on each.

        Raises:
            TriageError: The folder cannot be used, or no model can be exported.
            OSError: A file cannot be written.
        """
        with Folder(self.folder) as folder, contextlib.closing(State(folder.path)) as state:
            state.list_models([model.name for model in self.models])
            last = state.last()
            same = {model.name: last[model.name] for model in self.models if model.name in last and self._is_same(model, last[model.name])}
            known = {} if self.again else {name: each for name, each in same.items() if each.verdict.log.is_file()}
            jobs = {model.name: Job(model, folder.files(model)) for model in self.models if model.name not in known}
            for job in jobs.values():
                for file in dataclasses.astuple(job.files):
                    file.unlink(missing_ok=True)
            for ended in self.engine([*jobs.values()], self.limits) if jobs else ():
                job = jobs[ended.name]
                verdict = conclude(job, ended, self.limits, self.command_line)
                facts = Facts.read(job.files.facts)
                key = self._key(job.model, facts, verdict)
                state.add(Known(verdict, facts, key, same[ended.name].input if ended.name in same else key))
                told(verdict)
            verdicts = tuple(each.verdict for each in state.last().values())
            files = tuple(merged.write((verdict.log for verdict in verdicts), folder.path))
            found = tuple(clusters(verdicts))
            scripts = self._scripts(folder, found) if self.repro else {}
            return Triaged(tuple(self.models), verdicts, len(jobs), found, state.flaky(), files, scripts)

    def _scripts(self, folder: Folder, found: Sequence[Cluster]) -> Mapping[str, pathlib.Path]:
        """The scripts for the first causes. Those that are not there yet take another export of the model each."""
        shown = {each.first for each in found[:SCRIPTS]}
        files = {model.name: folder.files(model) for model in self.models if model.name in shown}
        jobs = []
        for model in self.models:
            if model.name in files and not files[model.name].repro.is_file():
                asked = dataclasses.replace(model, options=dataclasses.replace(model.options, repro=True))
                # NOTE: an export that the time limit ends here must not replace the log that is there.
                beside = folder.files(dataclasses.replace(model, file=f"{model.file}.repro"))
                jobs.append(Job(asked, dataclasses.replace(beside, repro=files[model.name].repro)))
        for _ in self.engine(jobs, self.limits) if jobs else ():
            pass
        for job in jobs:
            for file in (job.files.log, job.files.output, job.files.facts):
                file.unlink(missing_ok=True)
            shutil.rmtree(graphs_folder(job.files.log), ignore_errors=True)
        return {name: each.repro for name, each in files.items() if each.repro.is_file()}

    def _is_same(self, model: Model, known: Known) -> bool:
        """Whether an earlier verdict is about the same input."""
        return known.key == self._key(model, known.facts, known.verdict)

    def _key(self, model: Model, facts: Facts, verdict: Verdict) -> str:
        return freshness.key(model, facts, self.limits if verdict.outcome in ("out of time", "out of memory") else None)
