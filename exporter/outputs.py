"""The files that an export writes beside the model: the log, the report, a script that fails alike, the captured program."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import pathlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from onnxplain.diagnostics import (
    ATTACHMENTS,
    CHART,
    GRAPHS,
    MEMORY,
    PICTURE,
    SARIF_PROFILES,
    Attachment,
    DiagnosticContext,
    Event,
    ExportFailed,
    Forked,
    InvalidArgument,
    Log,
    LogNotSaved,
    OnnxExporterError,
    OwnProcess,
    SarifProfile,
    graphs_folder,
    is_page,
    remove_abandoned,
    replace_file,
    sha256,
)

from . import graph_views
from . import repro as repro_script
from .journal import Journal
from .memory import listing
from .process import Budget, without_collection
from .program import ONNXProgram
from .request import Request
from .signals import Terminated
from .source import locations
from .storage import Staging, checked_folder, checked_path, current_folder_exists, data_file

_Place = bool | str | os.PathLike[str]
"""False or None writes no file, True writes it to the default path, a path writes it there."""
_GRAPHS = "the graphs of sarif"
_LARGEST_PICTURE = 100_000
"""Characters of a picture that a report shows."""


@dataclasses.dataclass(frozen=True)
class Outputs:
    """Where to write each file; None does not write it.

    Attributes:
        sarif: The log.
        sarif_profile: How much the log contains.
        report: The report: a page for browsers if its name ends with .html, else markdown.
        repro: The script, which only a failed export writes.
        captured: The program that torch.export captured.
        attachments: The folder for the log's attachments.
        process: The process whose files they are: in one that the model forks, the methods write nothing and raise `Forked`.
    """

    sarif: pathlib.Path | None
    sarif_profile: SarifProfile
    report: pathlib.Path | None
    repro: pathlib.Path | None
    captured: pathlib.Path | None
    attachments: pathlib.Path | None
    process: OwnProcess = dataclasses.field(default_factory=OwnProcess)

    @classmethod
    def checked(
        cls,
        request: Request,
        subject: str,
        *,
        sarif: str | os.PathLike[str] | None,
        sarif_profile: SarifProfile,
        report: _Place,
        repro: _Place,
        dump_exported_program: bool,
        artifacts_dir: str | os.PathLike[str] | None,
    ) -> Outputs:
        """Reads the arguments of `export` with these names.

        Raises:
            InvalidArgument: An argument is not a path, the export cannot write there, or two arguments name one file.
            OnnxExporterError: The current folder does not exist.
        """
        if not current_folder_exists():
            raise OnnxExporterError("The current folder does not exist any more, and torch needs one: change to another folder first.")
        if sarif_profile not in SARIF_PROFILES:
            raise InvalidArgument(f"sarif_profile: expected one of {SARIF_PROFILES}, got {sarif_profile!r}")
        folder = None if artifacts_dir is None else checked_folder("artifacts_dir", artifacts_dir)
        beside = request.destination or (folder or pathlib.Path()) / f"{subject}.onnx"
        program = (folder or pathlib.Path()) / f"{subject}.pt2"
        outputs = cls(
            sarif=None if sarif is None else checked_path("sarif", sarif, make_folder=True),
            sarif_profile=sarif_profile,
            report=_path("report", report, beside.with_suffix(".md")),
            repro=_path("repro", repro, beside.with_suffix(".repro.py")),
            captured=_path("dump_exported_program", dump_exported_program, program),
            attachments=folder,
        )
        if outputs.captured is not None:
            checked_folder("dump_exported_program", outputs.captured.parent)
        outputs._check_distinct(request)
        return outputs

    @contextlib.contextmanager
    def kept_if_cut_short(self, context: DiagnosticContext) -> Iterator[None]:
        """Keeps what the export in the block finds, also if something kills the process or interrupts the export.

        Until `write` replaces it, the log is one that says that the export did not come to its end.
        """
        # NOTE: an export that was killed while it ran its script left the script there.
        remove_abandoned(pathlib.Path(tempfile.gettempdir()))
        context.watcher = None if self.sarif is None else Journal(context, self.sarif, self.sarif_profile)
        try:
            yield
        except ExportFailed:
            raise
        except BaseException as error:
            # NOTE: a signal, or a fault of onnxplain between two stages.
            context.watcher = None
            names = {KeyboardInterrupt: "SIGINT", Terminated: str(error)}
            # NOTE: what interrupts the export counts, whatever becomes of its log. A process that the model has forked writes none.
            with contextlib.suppress(LogNotSaved, Forked):
                self.write(context.interrupted(names.get(type(error), type(error).__name__), error))
            raise
        finally:
            context.watcher = None

    def with_model(self, program: ONNXProgram) -> Log:
        """The log of a program. If a report is requested, the log has a picture of the model, and the memory of its activations."""
        if self.report is None:
            return program.diagnostics
        made = list(self._picture(program))
        # NOTE: an ExportedProgram may have no example inputs, and then dynamic dims have no sizes.
        with contextlib.suppress(InvalidArgument):
            made.append(Attachment(MEMORY, listing(program.memory())))
        return dataclasses.replace(program.diagnostics, attachments=(*program.diagnostics.attachments, *made))

    def _picture(self, program: ONNXProgram) -> Iterator[Attachment]:
        """The picture that fits the report; none if it would be too large."""
        assert self.report is not None
        found = [each.location.module for each in program.diagnostics.active if each.location and each.location.module]
        box = graph_views.of_model(program.diagnostics.subject, program.model, by_module=True, found=found)
        if is_page(self.report):
            text, name = graph_views.svg(box), PICTURE
        else:
            from onnxplain.diagnostics import markdown

            text, name = graph_views.chart(box, markdown.BLOCK_LIMIT), CHART
        if 0 < len(text) <= _LARGEST_PICTURE:
            yield Attachment(name, text)

    def write(self, log: Log) -> Log:
        """Writes log, report and attachments. Returns the log with an event for what the SARIF log omits.

        Raises:
            LogNotSaved: A file could not be written.
        """
        self.process.check()
        try:
            if self.sarif is not None:
                from onnxplain.diagnostics import sarif as sarif_sink

                with without_collection():
                    left_out = sarif_sink.write(log, self.sarif, profile=self.sarif_profile)
                events = (Event(logging.WARNING, "sarif", text, log.ended.timestamp()) for text in left_out)
                log = dataclasses.replace(log, events=(*log.events, *events))
            if self.report is not None:
                from onnxplain.diagnostics import html, markdown

                if is_page(self.report):
                    html.write([log], self.report)
                else:
                    markdown.write(log, self.report)
            if self.attachments is not None:
                for attachment in log.attachments:
                    replace_file(self.attachments / attachment.name, attachment.text.encode())
        except OSError as error:
            raise LogNotSaved(log, error) from error
        return log

    def write_repro(
        self, context: DiagnosticContext, request: Request, failed: ExportFailed, translations: Mapping[Any, Any], budget: Budget
    ) -> None:
        """Writes a script that fails like `failed`, if one is requested, and adds an event to the log of `failed`."""
        if self.repro is None:
            return
        text = ""
        # NOTE: a fault in here becomes a separate finding; the finding that failed the export stays the first.
        with contextlib.suppress(ExportFailed), context.stage("repro"):
            text = repro_script.source(context, request, failed.log, translations, budget)
        try:
            if text:
                replace_file(self.repro, text.encode(errors="backslashreplace"))
                context.wrote(self.repro, "debugOutputFile", sha256(self.repro))
        except OSError as error:
            raise LogNotSaved(context.log(), error) from error
        failed.log = context.log()

    def write_captured(self, program: ONNXProgram) -> None:
        """Saves the captured program, whole or not at all, if that is requested."""
        if self.captured is None:
            return
        try:
            with Staging(self.captured) as staging:
                torch.export.save(program.exported_program, staging.path)  # type: ignore[arg-type]  # torch takes any path
                staging.commit()
        except Exception as error:
            # NOTE: torch raises a RuntimeError for a full disk, and other exceptions for programs that it cannot save.
            raise LogNotSaved(program.diagnostics, error) from error

    def _check_distinct(self, request: Request) -> None:
        """Refuses an output that would replace another one, or a source of the model or of the program that exports it."""
        files, folders = self._files(request), self._folders()
        sources = {place.file for place in request.callers}
        if any(os.path.lexists(path) for path in files.values()):
            sources |= locations.source_files(request.model)
        seen = dict.fromkeys(map(os.path.realpath, sources), "a source file of the program")
        for argument, path in (*files.items(), *folders.items()):
            own = f"that of {argument}"
            owner = seen.setdefault(os.path.realpath(path), own)
            if owner != own:
                raise InvalidArgument(f"{argument}: expected another path than {owner}, got {str(path)!r}")
        places = {os.path.realpath(path): f"the file of {argument}" for argument, path in files.items()}
        if self.sarif is not None:
            # NOTE: a log without graphs removes their folder.
            places[os.path.realpath(graphs_folder(self.sarif))] = _GRAPHS
        for argument, path in files.items():
            above = next((places[str(each)] for each in pathlib.Path(os.path.realpath(path)).parents if str(each) in places), None)
            if above is not None and not (above == _GRAPHS and argument in self._graphs()):
                raise InvalidArgument(f"{argument}: expected a path outside of {above}, got {str(path)!r}")
            # NOTE: the paths that follow from others are checked nowhere else: what is no regular file must not be replaced, and a name
            # may be too long. Most models need no second file.
            if argument != "external_data" or request.external_data or os.path.lexists(path):
                checked_path(argument, path)
        for argument, folder in folders.items():
            if os.path.lexists(folder) and not folder.is_dir():
                raise InvalidArgument(f"{argument}: expected a folder, got the file {str(folder)!r}")

    def _files(self, request: Request) -> dict[str, pathlib.Path]:
        """All files that the export may write, by what they are for."""
        model = request.destination
        files = {
            "f": model,
            "external_data": None if model is None or request.external_data is False else data_file(model),
            "sarif": self.sarif,
            "report": self.report,
            "repro": self.repro,
            "dump_exported_program": self.captured,
        }
        if self.attachments is not None:
            files |= {f"{name} in artifacts_dir": self.attachments / name for name in ATTACHMENTS}
        return {argument: path for argument, path in files.items() if path is not None} | self._graphs()

    def _graphs(self) -> dict[str, pathlib.Path]:
        """The graphs of the log. A log without graphs removes those of an earlier log."""
        if self.sarif is None:
            return {}
        return {f"the graph {name} of sarif": graphs_folder(self.sarif) / f"{name}.txt" for name in GRAPHS}

    def _folders(self) -> dict[str, pathlib.Path]:
        """All folders that the export makes and fills by itself."""
        folders = {
            "artifacts_dir": self.attachments,
            _GRAPHS: None if self.sarif is None else graphs_folder(self.sarif),
        }
        return {argument: folder for argument, folder in folders.items() if folder is not None}


def _path(argument: str, value: _Place, default: pathlib.Path) -> pathlib.Path | None:
    """The path of a file: the user's choice, or `default`."""
    if value is False:
        return None
    return checked_path(argument, default) if value is True else checked_path(argument, value, make_folder=True)
