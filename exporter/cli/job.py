"""One export of the command line: its options, its files, and what it prints."""

from __future__ import annotations

import dataclasses
import logging
import os
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import click

import onnxplain
from onnxplain.diagnostics import DiagnosticOptions, InvalidArgument, Level, Log, OnnxExporterError, SarifProfile, visible
from onnxplain.signals import Terminated

if TYPE_CHECKING:
    from onnxplain.program import ONNXProgram

    from .inputs import Input


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `onnxplain export`, by their names there. An empty `report` or `repro` is one without a path."""

    output: str | None
    sarif: str | None
    sarif_profile: SarifProfile
    report: str | None
    repro: str | None
    artifacts: str | None
    name: str | None
    inputs: tuple[Input, ...]
    dynamic: tuple[str, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    opset: int | None
    strategies: tuple[str, ...]
    optimize: bool
    optimize_memory: bool
    external_data: bool | None
    verify: bool
    verify_sizes: int | tuple[Mapping[str, int], ...]
    try_fixes: bool
    control_flow: Literal["rewrite", "libraries", "report"]
    functions: Literal["none", "modules"]
    profile: bool
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    levels: Mapping[str, Level]
    warnings_as_errors: bool
    verbosity: str

    def diagnostics(self) -> DiagnosticOptions:
        """What counts as a finding. Raises `UsageError`."""
        try:
            return DiagnosticOptions(
                verbosity_level=getattr(logging, self.verbosity.upper()),
                warnings_as_errors=self.warnings_as_errors,
                levels=self.levels,
                select=self.select,
                ignore=self.ignore,
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error


@dataclasses.dataclass(frozen=True)
class Files:
    """The files that an export writes; None for those that it does not."""

    output: pathlib.Path
    sarif: pathlib.Path
    report: pathlib.Path | None
    repro: pathlib.Path | None
    artifacts: pathlib.Path | None

    @classmethod
    def of(cls, model: str, options: Options) -> Files:
        """Names the files that have no name yet after `model`."""
        output = _named(options.output or f"{model}.onnx", f"{model}.onnx")
        folder = options.output if options.output and is_folder(options.output) else f".sarif{os.sep}"
        report = "" if options.profile and options.report is None else options.report
        repro = options.repro
        return cls(
            output,
            _named(options.sarif or folder, f"{model}.sarif"),
            None if report is None else _named(report or str(output.with_suffix(".md")), f"{model}.md"),
            None if repro is None else _named(repro or str(output.with_suffix(".repro.py")), f"{model}.repro.py"),
            None if options.artifacts is None else _named(options.artifacts, model),
        )

    def within(self, folder: pathlib.Path) -> Files:
        """The files with paths relative to a folder, which the user's code may have left meanwhile."""
        if folder == pathlib.Path.cwd():
            return self
        return dataclasses.replace(self, **{name: folder / path for name, path in self.named().items()})

    def check_other_than(self, source: str, taken: Mapping[str, str]) -> None:
        """Raises `UsageError` if a file is that of the target, or one of `taken`, which other targets have written."""
        for option, path in self.named().items():
            real = os.path.realpath(path)
            if real == os.path.realpath(source):
                raise click.UsageError(f"--{option}: expected a file other than the target's, got {str(path)!r}")
            if real in taken:
                raise click.UsageError(
                    f"--{option}: {str(path)!r} belongs to {taken[real]} already. "
                    "Export one of the two alone with another --name, or give it a name in a profile of pyproject.toml."
                )

    def named(self) -> dict[str, pathlib.Path]:
        """The files, by their options."""
        paths = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: path for name, path in paths.items() if path is not None}


@dataclasses.dataclass(frozen=True)
class Called:
    """How the command was called, for the log: its command line, and a sentence for each option from elsewhere."""

    command_line: str
    settings: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Done:
    """An export that has ended, with a model or without."""

    log: Log
    files: Files


def is_folder(path: str) -> bool:
    """Whether a path stands for a folder, in which a file is named after the model."""
    return path.endswith(("/", os.sep))


def _named(path: str, name: str) -> pathlib.Path:
    return pathlib.Path(path, name) if is_folder(path) else pathlib.Path(path)


def parts(target: str) -> tuple[str, str]:
    """The two parts of TARGET. Raises `UsageError`."""
    source, _, attribute = target.rpartition(":")
    if not source or not attribute:
        hint = (
            "" if not target.endswith(".py") else f", got {target!r}. Name the model in it, or the function that returns it: {target}:NAME"
        )
        raise click.UsageError(f"Expected a TARGET such as path/to/file.py:NAME, package.module:NAME or timm:resnet18{visible(hint)}.")
    return source, attribute


def run(target: str, options: Options, called: Called, taken: Mapping[str, str]) -> Done:
    """Exports a target and prints the findings.

    Raises:
        click.ClickException: There is no export: the target cannot be loaded, or an option has a wrong value.
    """
    source, attribute = parts(target)
    diagnostic_options = options.diagnostics()

    from .inputs import with_inputs
    from .progress import StageLine
    from .target import load, users_code

    stages, here = StageLine(), pathlib.Path.cwd()
    loaded = load(source, attribute, with_inputs=bool(options.inputs))
    with users_code(f"{target} could not be looked at"):
        loaded = with_inputs(loaded, options.inputs, options.dynamic)
    from onnxplain.api import subject_of

    files = Files.of(subject_of(loaded.model) if options.name is None else options.name, options).within(here)
    files.check_other_than(source, taken)
    program = None
    try:
        with stages.active():
            program = onnxplain.export(
                loaded.model,
                loaded.args,
                f=files.output,
                kwargs=loaded.kwargs,
                dynamic_shapes=loaded.dynamic_shapes,
                input_names=options.input_names or None,
                output_names=options.output_names or None,
                opset_version=options.opset,
                external_data=options.external_data,
                optimize="memory" if options.optimize_memory else options.optimize,
                verify=options.verify,
                verify_sizes=options.verify_sizes,
                try_fixes=options.try_fixes,
                control_flow=options.control_flow,
                functions=options.functions,
                profile=options.profile,
                sarif=files.sarif,
                sarif_profile=options.sarif_profile,
                name=options.name,
                report=files.report or False,
                repro=files.repro or False,
                artifacts_dir=files.artifacts,
                diagnostic_options=diagnostic_options,
                strategies=options.strategies,
                _caller=loaded.definition,
                _command_line=called.command_line,
                _settings=called.settings,
                _on_stage=stages.show,
            )
        log = program.diagnostics
    except onnxplain.ExportFailed as failure:
        log = failure.log
    except (KeyboardInterrupt, Terminated):
        click.echo(visible(f"The log {files.sarif} names the line that was running."), err=True)
        raise
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    except OnnxExporterError as error:
        raise click.ClickException(str(error)) from error
    _show(log, files, program)
    return Done(log, files)


def _show(log: Log, files: Files, program: ONNXProgram | None) -> None:
    """Prints the findings, what was exported, and the files."""
    from onnxplain.diagnostics import make_console, show_log

    from .exported import details

    written = {"log": files.sarif, **({"report": files.report} if files.report else {})}
    show_log(log, make_console(), written, () if program is None else details(program))
    for event in log.events:
        if event.stage in ("repro", "sarif") and event.level >= logging.WARNING:
            click.echo(visible(event.text))
    if not log.succeeded and files.output.exists():
        click.echo(f"{visible(str(files.output))} is still the model of an earlier export.")


def as_options(params: Mapping[str, Any]) -> Options:
    """The options among the parameters of the command."""
    return Options(**{field.name: params[field.name] for field in dataclasses.fields(Options)})
