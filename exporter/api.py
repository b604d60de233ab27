"""`export`: checks the arguments, runs the pipeline, writes what was asked for."""

from __future__ import annotations

import contextlib
import cProfile
import dataclasses
import io
import logging
import os
import pathlib
import platform
import pstats
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from types import NoneType
from typing import Any, Literal

import torch

from onnxplain.diagnostics import (
    SARIF_PROFILES,
    Confidence,
    DiagnosticContext,
    DiagnosticOptions,
    Event,
    Evidence,
    ExportFailed,
    Fix,
    InvalidArgument,
    Location,
    Log,
    LogNotSaved,
    SarifProfile,
    Tool,
    atomic,
)
from onnxplain.diagnostics.log import PROFILE
from onnxplain.process import without_collection
from onnxplain.rules import ArgumentIgnored, InternalError, LegacyDynamicAxes

from . import graph_views, pipeline
from .capture.explain import shapes_argument
from .program import ONNXProgram
from .registry import OnnxRegistry, checked_opset
from .request import DEFAULT_OPSET, STRATEGIES, FXGraphExtractor, Request, checked_strategies, fitted
from .request import dynamic_shapes as shapes
from .source import call_sites, locations
from .storage import Staging, checked_folder, checked_path, sha256

URI = "https://github.com/onnxplain/onnxplain"
"""The project's page, which logs refer to."""

_OLD = {
    "training": "call model.train() or model.eval() before the export",
    "operator_export_type": "the graph has ONNX operators and those of custom_translation_table",
    "do_constant_folding": "optimize decides about all clean-up",
    "custom_opsets": "the opsets of custom operators follow from their translations",
    "export_modules_as_functions": "modules are in the metadata of each ONNX node",
    "autograd_inlining": "autograd functions are always traced through",
    "fallback": "there is no other exporter to fall back to",
}
"""Arguments of `torch.onnx.export` without a meaning here, and what to do instead."""


def export(
    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    args: tuple[Any, ...] | torch.Tensor = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool | None = None,
    dynamic_shapes: Mapping[str, Any] | tuple[Any, ...] | list[Any] | Literal[True] | None = None,
    custom_translation_table: Mapping[Callable[..., Any], Callable[..., Any] | Sequence[Callable[..., Any]]] | None = None,
    report: bool | str | os.PathLike[str] = False,
    repro: bool | str | os.PathLike[str] = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] | None = None,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]] | None = None,
    diagnostic_options: DiagnosticOptions | None = None,
    sarif: str | os.PathLike[str] | None = None,
    sarif_profile: SarifProfile = "full",
    name: str | None = None,
    strategies: Sequence[str | FXGraphExtractor] = STRATEGIES,
    _registry: OnnxRegistry | None = None,
    _caller: Location | None = None,
    _command_line: str = "",
    _on_stage: Callable[[str], None] | None = None,
    **old: Any,
) -> ONNXProgram:
    """Exports a model to ONNX. The arguments mean what they mean in `torch.onnx.export(..., dynamo=True)`.

    Args:
        model: A module, a function of tensors, or an ExportedProgram.
        args: Positional example inputs; a single tensor stands for a tuple of one. An ExportedProgram needs none.
        f: Where to save the model; None keeps it in memory.
        kwargs: Keyword example inputs.
        verbose: True writes the findings to standard error, too.
        input_names: Names for the graph's inputs, in order; the parameters' names where missing.
        output_names: Names for the graph's outputs, in order; the FX nodes' names where missing.
        opset_version: The ONNX opset; 20 by default.
        dynamo: Only True has a meaning here.
        external_data: True saves the weights to `<f>.data`, False never does, None does when the model is over 2 GiB.
        dynamic_shapes: As in `torch.export.export`, for each input a dict or tuple of dims; a string names a dim that stays dynamic.
            True makes every dim of every tensor dynamic but those that the model fixes, which become notes.
        custom_translation_table: Operator to the onnxscript function (or functions) that translates it; it wins over ours.
        report: True saves a markdown report, beside `f` or in `artifacts_dir`; a path says where.
        repro: True saves a script that fails with the same rule at the same line, beside `f` or in `artifacts_dir`; a path says where. Only
            an export that fails writes it. It holds the source that the model needs and what the model is made of, no weights and no
            numbers of the inputs; see `onnxplain.repro`. It is run once, to see that it fails as it should: events of the log tell.
        optimize: Whether the ONNX graph is cleaned up.
        verify: Whether the result is compared with eager PyTorch in ONNX Runtime.
        profile: Attaches to the log in which functions the time was spent.
        dump_exported_program: Saves what torch.export captured to `artifacts_dir`.
        artifacts_dir: Where `report`, `repro` and `dump_exported_program` go, the current folder by default. If given, the log's
            attachments go there, too: the profile, and at `logging.DEBUG` dumps of the graphs.
        export_params: False leaves the weights out of the file.
        keep_initializers_as_inputs: Lists the weights among the graph's inputs, too.
        dynamic_axes: The old way to say `dynamic_shapes`: `{input name: {axis: name}}`.
        diagnostic_options: What counts as a finding, and how much is recorded.
        sarif: Where to save the log as SARIF 2.1.0; None saves none. It is also on the result and on the exception. Graphs that findings
            lead through are saved as text in a folder beside it, `<sarif without its suffix>.graphs`.
        sarif_profile: "full" for all that is known; "github" for what GitHub code scanning accepts: each finding at a place in the
            repository, none that is suppressed, no stacks and graphs, at most 5,000. What is left out is said, also as an event of the log.
        name: What the log calls the model: its class by default. Gates and code scanning tell models apart by it.
        strategies: Which capture strategies to try, in order: of "non-strict", "strict", "draft", and `FXGraphExtractor`s of your own.
        **old: Arguments of older exporters that have no meaning any more; each becomes a note.

    Returns:
        The exported model with its log.

    Raises:
        ExportFailed: There is no result; it carries the log, and its text begins with the first finding.
        InvalidArgument: An argument has the wrong type or value (a TypeError and a ValueError).
        LogNotSaved: The log, the report, the script or what torch.export captured could not be written; it carries the log.
    """
    switches = {
        "dynamo": dynamo,
        "optimize": optimize,
        "verify": verify,
        "profile": profile,
        "dump_exported_program": dump_exported_program,
        "export_params": export_params,
        "keep_initializers_as_inputs": keep_initializers_as_inputs,
    }
    for switch, value in switches.items():
        _checked(switch, value, bool)
    for switch, choice in {"verbose": verbose, "external_data": external_data}.items():
        _checked(switch, choice, bool, NoneType)
    options = DiagnosticOptions() if diagnostic_options is None else _checked("diagnostic_options", diagnostic_options, DiagnosticOptions)
    unknown = [name for name in old if name not in _OLD]
    if unknown:
        raise InvalidArgument(f"export() got an unexpected keyword argument {unknown[0]!r}")
    positional = (args,) if isinstance(args, torch.Tensor) else tuple(_checked("args", args, tuple, list))
    keywords: Mapping[str, Any] = dict(_checked("kwargs", kwargs, Mapping, NoneType) or {})
    names = _checked_names("input_names", input_names)
    outputs = _checked_names("output_names", output_names)
    axes = _checked("dynamic_axes", dynamic_axes, Mapping, NoneType)
    obsolete = dynamic_shapes is not None or isinstance(model, torch.export.ExportedProgram)
    if axes and not obsolete:
        dynamic_shapes = shapes.from_dynamic_axes(model, positional, keywords, names, outputs, axes)
    everything = dynamic_shapes is True and isinstance(model, torch.export.ExportedProgram)
    if everything:
        dynamic_shapes = None
    if isinstance(model, torch.export.ExportedProgram):
        if verify and not (positional or keywords):
            positional, keywords = model.example_inputs or ((), {})
        if verify or positional or keywords:
            positional, keywords = fitted(model, positional, keywords)
    request = Request(
        model=_checked_model(model),
        args=positional,
        kwargs=keywords,
        dynamic_shapes=shapes.for_torch(_checked_shapes(dynamic_shapes)),
        dim_names=shapes.named(model, positional, keywords) if dynamic_shapes is True else dynamic_shapes,
        input_names=names,
        output_names=outputs,
        opset_version=_checked_opset(opset_version),
        strategies=checked_strategies(strategies),
        destination=None if f is None else checked_path("f", f),
        external_data=external_data,
        export_params=export_params,
        keep_initializers_as_inputs=keep_initializers_as_inputs,
        optimize=optimize,
        verify=verify,
        caller=_caller or locations.caller(),
    )
    registry = _registry or OnnxRegistry(request.opset_version)
    translations = _checked("custom_translation_table", custom_translation_table, Mapping, NoneType) or {}
    for target, functions in translations.items():
        registry.register_target(target, functions if isinstance(functions, Sequence) else [functions])
    if sarif_profile not in SARIF_PROFILES:
        raise InvalidArgument(f"sarif_profile: expected one of {SARIF_PROFILES}, got {sarif_profile!r}")
    folder = None if artifacts_dir is None else checked_folder("artifacts_dir", artifacts_dir)
    subject = subject_of(model) if name is None else _checked_name(name)
    unnamed = request.destination or (folder or pathlib.Path()) / f"{subject}.onnx"
    report_path = _path_of("report", report, unnamed.with_suffix(".md"))
    repro_path = _path_of("repro", repro, unnamed.with_suffix(".repro.py"))
    sarif_path = None if sarif is None else checked_path("sarif", sarif, make_folder=True)
    dump_path = _path_of("dump_exported_program", dump_exported_program, (folder or pathlib.Path()) / f"{subject}.pt2")
    if dump_path is not None:
        checked_folder("dump_exported_program", dump_path.parent)
    _check_distinct(f=request.destination, sarif=sarif_path, report=report_path, repro=repro_path, dump_exported_program=dump_path)
    if repro_path is not None and request.caller is not None and repro_path.absolute() == pathlib.Path(request.caller.file).absolute():
        raise InvalidArgument(f"repro: expected another file than the source, got {str(repro_path)!r}")
    context = DiagnosticContext(
        tool=Tool("onnxplain", metadata.version("onnxplain"), URI),
        subject=subject,
        options=options,
        internal_error=lambda stage, error: InternalError(stage=stage, error=f"{type(error).__name__}: {error}"),
        locate=lambda error: _located(error, request),
        on_stage=_on_stage,
        command_line=_command_line,
        places=lambda: _places(request),
        draw=graph_views.around,
    )
    context.environment.update(_environment())
    if axes and not obsolete:
        inputs = tuple(dict.fromkeys(axes))
        instead = Fix("Say it as dynamic_shapes.", Confidence.SAFE, snippet=shapes_argument.code(dynamic_shapes))
        place = call_sites.at(call_sites.argument(request, "dynamic_axes"), request)
        context.report(LegacyDynamicAxes(inputs=inputs), at=place, fixes=[instead])
    _note_old_arguments(context, request, old, dynamo=dynamo, dynamic_axes=axes if obsolete else None, dynamic_shapes=everything)
    try:
        program = _profiled(context, request, registry) if profile else pipeline.run(context, request, registry)
    except ExportFailed as failed:
        if repro_path is not None:
            _write_repro(context, request, failed, translations, repro_path)
        failed.log = _write(failed.log, sarif_path, sarif_profile, report_path, folder, verbose=verbose)
        raise
    program.diagnostics = _write(program.diagnostics, sarif_path, sarif_profile, report_path, folder, verbose=verbose)
    if dump_path is not None:
        _dump(program, dump_path)
    return program


def _dump(program: ONNXProgram, path: pathlib.Path) -> None:
    """Saves what torch.export captured, whole or not at all."""
    try:
        with Staging(path) as staging:
            torch.export.save(program.exported_program, staging.path)  # type: ignore[arg-type]
            staging.commit()
    except Exception as error:
        # NOTE: torch raises a RuntimeError where a disk is full, and others about programs that it cannot save.
        raise LogNotSaved(program.diagnostics, error) from error


def _places(request: Request) -> tuple[Location, ...]:
    """Where the model is defined, and where its export is asked for, those in files of the user's first."""
    definition = locations.module_definition(request.model) if callable(request.model) else None
    places = [place for place in (definition, request.caller) if place is not None]
    return tuple(sorted(places, key=lambda place: not locations.is_users(place.file)))


def _located(error: BaseException, request: Request) -> Evidence:
    """The user's line behind an unexpected exception; the call of the export where there is none on its stack."""
    found = locations.at_exception(error, request.model if isinstance(request.model, torch.nn.Module) else None)
    return found if found.location is not None else Evidence(request.caller)


def _profiled(context: DiagnosticContext, request: Request, registry: OnnxRegistry) -> ONNXProgram:
    """Runs the pipeline and attaches where its time went, to the log of a failed export, too."""
    profiler = cProfile.Profile()

    def log() -> Log:
        table = io.StringIO()
        pstats.Stats(profiler, stream=table).sort_stats("cumulative").print_stats(40)
        context.attach(PROFILE, table.getvalue, logging.CRITICAL)
        return context.log()

    try:
        program = profiler.runcall(pipeline.run, context, request, registry)
    except ExportFailed as failed:
        failed.log = log()
        raise
    program.diagnostics = log()
    return program


def _write(
    log: Log,
    sarif: pathlib.Path | None,
    sarif_profile: SarifProfile,
    report: pathlib.Path | None,
    folder: pathlib.Path | None,
    *,
    verbose: bool | None,
) -> Log:
    """Writes what was asked for. Returns the log with what the SARIF log leaves out as events."""
    try:
        if sarif is not None:
            from onnxplain.diagnostics import sarif as sarif_sink

            with without_collection():
                left_out = sarif_sink.write(log, sarif, profile=sarif_profile)
            events = (Event(logging.WARNING, "sarif", text, log.ended.timestamp()) for text in left_out)
            log = dataclasses.replace(log, events=(*log.events, *events))
        if report is not None:
            from onnxplain.diagnostics import markdown

            markdown.write(log, report)
        for attachment in log.attachments if folder is not None else ():
            atomic.replace(folder / attachment.name, attachment.text.encode())  # type: ignore[operator]
    except OSError as error:
        raise LogNotSaved(log, error) from error
    if verbose:
        from rich.console import Console

        from onnxplain.diagnostics import console

        console.render(log, Console(stderr=True))
    return log


def _write_repro(
    context: DiagnosticContext, request: Request, failed: ExportFailed, translations: Mapping[Any, Any], path: pathlib.Path
) -> None:
    """Writes a script that fails like `failed`, whose log tells of it from now on."""
    from . import repro

    text = ""
    # NOTE: a fault in here becomes a finding of its own; what failed the export stays the first.
    with contextlib.suppress(ExportFailed), context.stage("repro"):
        text = repro.source(context, request, failed.log, translations)
    try:
        if text:
            atomic.replace(path, text.encode(errors="backslashreplace"))
            context.wrote(path, "debugOutputFile", sha256(path))
    except OSError as error:
        raise LogNotSaved(context.log(), error) from error
    failed.log = context.log()


def _note_old_arguments(context: DiagnosticContext, request: Request, old: Mapping[str, Any], **others: Any) -> None:
    reasons = {name: _OLD[name] for name in old}
    if not others["dynamo"]:
        reasons["dynamo"] = "capture is always torch.export's"
    if others["dynamic_axes"]:
        reasons["dynamic_axes"] = "dynamic_shapes, or the ExportedProgram, says which dims are dynamic"
    if others["dynamic_shapes"]:
        reasons["dynamic_shapes"] = "the ExportedProgram says which dims are dynamic"
    for name, reason in reasons.items():
        context.report(ArgumentIgnored(argument=name, reason=reason), at=request.caller)


def _path_of(argument: str, value: bool | str | os.PathLike[str], unnamed: pathlib.Path) -> pathlib.Path | None:
    """Where to write a file that may go to a place of its own choice, `unnamed`."""
    if value is False:
        return None
    return checked_path(argument, unnamed) if value is True else checked_path(argument, value, make_folder=True)


def _check_distinct(**paths: pathlib.Path | None) -> None:
    """Raises `InvalidArgument` if two arguments name one file."""
    seen: dict[pathlib.Path, str] = {}
    for argument, path in paths.items():
        other = None if path is None else seen.setdefault(path.absolute(), argument)
        if other not in (None, argument):
            raise InvalidArgument(f"{argument}: expected another file than that of {other}, got {str(path)!r}")


def _environment() -> Mapping[str, str]:
    packages = ("onnxplain", "torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime")
    versions = {"python": platform.python_version(), "platform": platform.platform()}
    # NOTE: torch's distribution version lacks the build, such as +cpu or +cu130.
    return {**versions, **{name: metadata.version(name) for name in packages}, "torch": str(torch.__version__)}


def subject_of(model: object) -> str:
    """What the log calls a model: the name of its class, or of the function."""
    return str(getattr(model, "__name__", type(model).__name__))


def _checked_name(name: str) -> str:
    subject = str(_checked("name", name, str))
    if not subject.isprintable() or not subject.strip() or set(subject) & set("/\\"):
        raise InvalidArgument(f"name: expected a word or two without slashes, got {subject!r}")
    return subject


def _checked(name: str, value: Any, *types: type) -> Any:
    if not isinstance(value, types):
        expected = " or ".join("None" if each is NoneType else each.__name__ for each in types)
        raise InvalidArgument(f"{name}: expected {expected}, got {type(value).__name__}: {value!r}")
    return value


def _checked_names(argument: str, names: Sequence[str] | None) -> list[str]:
    for name in _checked(argument, names, list, tuple, NoneType) or ():
        _checked(argument, name, str)
    return list(names or ())


def _checked_model(model: Any) -> Any:
    if isinstance(model, type) or not (callable(model) or isinstance(model, torch.export.ExportedProgram)):
        raise InvalidArgument(f"model: expected a torch.nn.Module, a function or an ExportedProgram, got {model!r}")
    return model


def _checked_opset(version: int | None) -> int:
    return DEFAULT_OPSET if version is None else checked_opset(version)


def _checked_shapes(dynamic_shapes: Any) -> Any:
    # NOTE: torch's collections of shapes, and of further examples, have a method of that name.
    if dynamic_shapes is True or isinstance(dynamic_shapes, Mapping | list | tuple | None) or hasattr(dynamic_shapes, "dynamic_shapes"):
        return dynamic_shapes
    raise InvalidArgument(f"dynamic_shapes: expected a dict, a tuple, a list, True or None, got {dynamic_shapes!r}")
