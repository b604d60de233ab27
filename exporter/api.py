"""`export`: checks the arguments, runs the pipeline, and writes the requested files."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, Literal

import torch

from onnxplain.diagnostics import (
    URI,
    Confidence,
    DiagnosticContext,
    DiagnosticOptions,
    Evidence,
    ExportFailed,
    Fix,
    Interruption,
    InvalidArgument,
    Location,
    Log,
    OnnxExporterError,
    OwnProcess,
    Rule,
    SarifProfile,
    Tool,
    describe,
    described_error,
    is_unicode,
)
from onnxplain.rules import ArgumentIgnored, ExportCutShort, InternalError, LegacyDynamicAxes, UserCodeRaised

from . import graph_views, pipeline
from .outputs import Outputs
from .process import Budget, deeper_calls, exporting, random_numbers_kept, versions
from .program import ONNXProgram
from .registry import OnnxRegistry, checked_opset
from .request import (
    CONTROL_FLOW,
    DEFAULT_OPSET,
    STRATEGIES,
    VERIFY_SIZES,
    DimNames,
    DynamicShapes,
    FXGraphExtractor,
    Request,
    as_shapes,
    check_inputs,
    checked,
    checked_choice,
    checked_functions,
    checked_model,
    checked_names,
    checked_shapes,
    checked_sizes,
    checked_strategies,
    checked_subject,
    containers,
    fitted,
    misfit,
    unknown_argument,
    with_keywords,
)
from .signals import orderly_end
from .source import call_sites, locations
from .storage import checked_path
from .time_profile import profiled

_OLD = {
    "training": "call model.train() or model.eval() before the export",
    "operator_export_type": "the graph has ONNX operators and those of custom_translation_table",
    "do_constant_folding": "optimize switches all clean-up",
    "custom_opsets": "the opsets of custom operators follow from their translations",
    "autograd_inlining": "autograd functions are always traced through",
    "fallback": "there is no second exporter to fall back to",
}
"""Arguments of `torch.onnx.export` without a meaning here, and what to do instead."""


@contextlib.contextmanager
def _users_code_blamed() -> Iterator[None]:
    """Raises InvalidArgument for what the code of an argument raises or exits with while the export reads it, outside of its stages."""
    try:
        yield
    except (OnnxExporterError, KeyboardInterrupt, Interruption):
        raise
    except BaseException as error:
        # NOTE: `__getattribute__` of a model and `__torch_function__` of an input are the user's code, and may raise or exit.
        line = locations.raised_by_user(error)
        if line is None and not isinstance(error, SystemExit):
            raise
        where = "" if line is None else f" at {describe(line)}"
        raise InvalidArgument(f"expected arguments that can be read, but their code raised {described_error(error)}{where}") from error


@_users_code_blamed()
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
    optimize: bool | Literal["memory"] = True,
    verify: bool = False,
    verify_sizes: int | Sequence[Mapping[str, int]] = VERIFY_SIZES,
    try_fixes: bool = True,
    control_flow: Literal["rewrite", "libraries", "report"] = "rewrite",
    functions: Literal["none", "modules"] = "none",
    export_modules_as_functions: bool | Collection[type[torch.nn.Module]] = False,
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
    _family: str = "",
    _settings: Sequence[str] = (),
    _on_stage: Callable[[str], None] | None = None,
    **old: Any,
) -> ONNXProgram:
    """Exports a model to ONNX. The arguments mean what they mean in `torch.onnx.export(..., dynamo=True)`.

    Args:
        model: A module, a function of tensors, or an ExportedProgram.
        args: Positional example inputs; a single tensor stands for a tuple of one. An ExportedProgram needs none. A dict at the end whose
            keys are parameters of `forward` stands for `kwargs`, as in torch.onnx, and an empty one for none. Inputs and outputs may
            be objects whose items and attributes hold the tensors, such as dataclasses and the caches of transformers. The export
            registers their classes with torch, and they stay registered.
        f: Where to save the model; None keeps it in memory.
        kwargs: Keyword example inputs.
        verbose: True also writes the findings to standard error.
        input_names: Names for the graph's inputs, in order; missing ones are named after the parameters, those of a cache such as
            `past_key_values.0.key`.
        output_names: Names for the graph's outputs, in order; missing ones are named after the keys or attributes that hold them, such as
            `logits`, those of a cache such as `present.0.key`, and others after the FX nodes.
        opset_version: The ONNX opset; 20 by default.
        dynamo: Only True has a meaning here.
        external_data: True saves the weights to `<f>.data`, False never does, None does when the model is over 2 GiB.
        dynamic_shapes: As in `torch.export.export`, a dict or tuple of dims for each input; a string names a dim that stays dynamic.
            True makes every dim of every tensor dynamic, except the dims that the model fixes, which become notes. Inputs without tensors
            need no entry. A cache takes one entry for all of its tensors, a flat list, lists of keys and values, or a pair for each layer.
        custom_translation_table: Maps an operator to the onnxscript function (or functions) that translate it, instead of ours.
        report: True saves a markdown report beside `f` or in `artifacts_dir`; a path saves it there, as a page for browsers if it ends with
            .html.
        repro: True saves a script that fails with the same rule at the same line, beside `f` or in `artifacts_dir`; a path saves it there.
            Only a failed export writes it. It contains the source and the modules that the failure needs, but no weights and no data of
            the inputs; see `onnxplain.repro`. Placeholders stand for strings of the model, unless it fails alike only with the strings.
            The export runs it, shortens it as long as a budget lasts, and an event in the log tells whether it fails alike.
        optimize: Whether the ONNX graph is cleaned up. "memory" also computes large tensors that a reduction soon collapses, and scores of
            attention, in chunks, if the example shows that it saves much (docs/memory.md), or if dynamic dims may make them large.
        verify: Whether the exported model's outputs in ONNX Runtime are compared with those of eager PyTorch: for the example, and, if dims
            are dynamic, for other sizes, with the example's values again. `ONNXProgram.verification` has the outcome.
        verify_sizes: With how many other sizes: a larger and a smaller one by default, then random ones within the ranges of the dims, the
            same in each run. Or with which ones: `[{"batch": 7}]`; dims without an entry keep the example's size.
        try_fixes: Whether a failed export may run copies of the model to explain the failure and to try fixes: at most 12 times, and for
            at most 20 seconds of processor time, or as long as the capture took if that is longer. At most 8 further runs, of at most 20
            seconds in all, compare a copy with rewritten loops and branches; at most 16, likewise, compare the graph with the model where a
            branch would limit dims. With False only captures run the model, fixes are guesses, and nothing is rewritten. The strategy
            "draft" runs loops that data ends as often as the example's data say, and is stopped after a quarter of these seconds, or after
            three times the first capture's.
        control_flow: What happens to Python loops over sizes and branches on data that torch.export cannot capture. "rewrite" exports a
            copy of the model in which they are operators, if the source shows that the copy computes the same for all inputs, and a trial
            shows it for some; otherwise the export fails with a finding at the line. "report" always fails so, with an edit; "libraries"
            rewrites the code of installed libraries only. Each rewritten line becomes a note with its new code. No file changes.
        functions: "modules" makes each call of a module a call of an ONNX function, with the class as its name and its Python module as its
            domain. Calls that compute the same from other weights share a function. A viewer shows each as a box that opens.
        export_modules_as_functions: True means the same; a set of classes does it for the modules of these classes.
        profile: Attaches a profile to the log: the time of each stage, and the lines of your code, and of packages that define modules of
            the model, which took the most time (docs/memory.md).
        dump_exported_program: Saves the program that torch.export captured to `artifacts_dir`.
        artifacts_dir: The folder for `report`, `repro` and `dump_exported_program`, the current one by default. If given, it also gets the
            log's attachments: the profile, and at `logging.DEBUG` dumps of the graphs.
        export_params: False leaves the weights out of the file.
        keep_initializers_as_inputs: Also lists the weights among the graph's inputs.
        dynamic_axes: The old form of `dynamic_shapes`: `{input name: {axis: name}}`.
        diagnostic_options: What counts as a finding, and how much is recorded.
        sarif: Where to save the log as SARIF 2.1.0; None does not save it. The result and the exception also carry the log. Graphs that
            findings refer to are saved as text in a folder beside it, `<sarif without its suffix>.graphs`.
        sarif_profile: "full" for everything; "github" for a log that GitHub code scanning accepts: each finding at a place in the
            repository, no suppressed findings, no stacks and graphs, at most 5,000 findings. An event of the log lists what it omits.
        name: The model's name in the log, its class by default. Gates and code scanning tell models apart by it.
        strategies: The capture strategies to try, in order: "non-strict", "strict", "draft", and your `FXGraphExtractor`s.
            Where "non-strict" fails and the model differentiates, operators are also recorded below autograd.
        **old: Arguments of older exporters without a meaning here; each becomes a note.

    Returns:
        The exported model with its log.

    Raises:
        ExportFailed: There is no result. The exception carries the log, and its text begins with the first finding.
        InvalidArgument: An argument has the wrong type or value (a TypeError and a ValueError).
        LogNotSaved: The log, the report, the script or the captured program could not be written. The exception carries the log.
        OnnxExporterError: Another export makes the call: its model, a hook, a translation, or a thread or job of a `ThreadPoolExecutor`
            that one of them starts. Exports of other threads wait for each other. Or the code of the model has forked this process, and
            the export goes on in the one that began it.
    """
    process = OwnProcess()
    switches = {
        "dynamo": dynamo,
        "optimize": optimize == "memory" or optimize,
        "verify": verify,
        "try_fixes": try_fixes,
        "profile": profile,
        "dump_exported_program": dump_exported_program,
        "export_params": export_params,
        "keep_initializers_as_inputs": keep_initializers_as_inputs,
    }
    for switch, value in switches.items():
        checked(switch, value, bool)
    for switch, choice in {"verbose": verbose, "external_data": external_data}.items():
        checked(switch, choice, bool, NoneType)
    for unknown in (each for each in old if each not in _OLD):
        raise unknown_argument(export, unknown)
    options = DiagnosticOptions() if diagnostic_options is None else checked("diagnostic_options", diagnostic_options, DiagnosticOptions)
    positional, keywords = _example(model, args, kwargs, verify=verify)
    check_inputs((positional, keywords))
    containers.register((positional, keywords))
    names, named_outputs = checked_names("input_names", input_names), checked_names("output_names", output_names)
    axes = checked("dynamic_axes", dynamic_axes, Mapping, NoneType)
    request = Request(
        model=checked_model(model),
        args=positional,
        kwargs=keywords,
        shapes=(shapes := _shapes(model, positional, keywords, checked_shapes(dynamic_shapes), axes, names)),
        input_names=names,
        output_names=named_outputs,
        opset_version=DEFAULT_OPSET if opset_version is None else checked_opset(opset_version),
        strategies=checked_strategies(strategies),
        control_flow=checked_choice("control_flow", control_flow, CONTROL_FLOW),
        destination=None if f is None else checked_path("f", f),
        external_data=external_data,
        export_params=export_params,
        keep_initializers_as_inputs=keep_initializers_as_inputs,
        optimize=optimize,
        verify=verify,
        verify_sizes=checked_sizes(verify_sizes),
        functions=checked_functions(functions, export_modules_as_functions),
        callers=locations.callers() if _caller is None else (_caller,),
        misfit_axes=misfit(model, positional, keywords, names, named_outputs, axes or {}) if shapes.argument == "dynamic_axes" else None,
    )
    translations = checked("custom_translation_table", custom_translation_table, Mapping, NoneType) or {}
    if external_data and request.destination is not None and not is_unicode(request.destination.name):
        raise InvalidArgument(f"f: expected a name without lone surrogates, by which the model can name its weights, got {str(f)!r}")
    registry = _with_translations(_registry or OnnxRegistry(request.opset_version), translations)
    subject = subject_of(model) if name is None else checked_subject(name)
    outputs = Outputs.checked(
        request,
        subject,
        sarif=sarif,
        sarif_profile=sarif_profile,
        report=report,
        repro=repro,
        dump_exported_program=dump_exported_program,
        artifacts_dir=artifacts_dir,
    )
    with orderly_end(), exporting(), deeper_calls(), random_numbers_kept():
        # NOTE: to read the arguments may have run code that forks, such as `__torch_function__`.
        process.check()
        dim_names, budget = DimNames(), Budget() if try_fixes else Budget(runs=0)
        context = _context(request, subject, options, dim_names, _on_stage, _command_line, _family)
        run = functools.partial(pipeline.run, context, request, registry, dim_names, budget)
        try:
            with outputs.kept_if_cut_short(context):
                for setting in _settings:
                    context.event(setting)
                _note_arguments(context, request, old, dynamo=dynamo, dynamic_axes=axes, dynamic_shapes=dynamic_shapes)
                program = profiled(context, model, run) if profile else run()
        except ExportFailed as failed:
            if outputs.repro is not None:
                # NOTE: the script runs for seconds, and whoever reads the log need not wait for it.
                outputs.write(failed.log)
                outputs.write_repro(context, request, failed, translations, budget)
            failed.log = _told(outputs.write(failed.log), verbose=verbose)
            raise
        program.diagnostics = _told(outputs.write(outputs.with_model(program)), verbose=verbose)
        outputs.write_captured(program)
        return program


def _example(
    model: object, args: tuple[Any, ...] | torch.Tensor, kwargs: Mapping[str, Any] | None, *, verify: bool
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """The example inputs. If an ExportedProgram is to be verified and none were given, those that it keeps."""
    positional = (args,) if isinstance(args, torch.Tensor) else tuple(checked("args", args, tuple, list))
    keywords: Mapping[str, Any] = dict(checked("kwargs", kwargs, Mapping, NoneType) or {})
    if not isinstance(model, torch.export.ExportedProgram):
        return with_keywords(model, positional, keywords)
    if verify and not (positional or keywords):
        positional, keywords = model.example_inputs or ((), {})
    return fitted(model, positional, keywords) if verify or positional or keywords else (positional, keywords)


def _shapes(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    dynamic_axes: Mapping[str, Any] | None,
    input_names: Sequence[str],
) -> DynamicShapes:
    """Which dims are dynamic, from whichever of the two arguments was given."""
    if isinstance(model, torch.export.ExportedProgram):
        return DynamicShapes.parse(None, model, args, kwargs)
    if dynamic_shapes is not None or not dynamic_axes:
        return DynamicShapes.parse(dynamic_shapes, model, args, kwargs)
    structure = as_shapes(model, args, kwargs, input_names, dynamic_axes)
    return DynamicShapes.parse(structure, model, args, kwargs, argument="dynamic_axes")


def _with_translations(registry: OnnxRegistry, translations: Mapping[Any, Any]) -> OnnxRegistry:
    for target, functions in translations.items():
        registry.register_target(target, functions if isinstance(functions, Sequence) else [functions])
    return registry


def _context(
    request: Request,
    subject: str,
    options: DiagnosticOptions,
    dim_names: DimNames,
    on_stage: Callable[[str], None] | None,
    command_line: str,
    family: str,
) -> DiagnosticContext:
    context = DiagnosticContext(
        tool=Tool("onnxplain", versions()["onnxplain"], URI),
        subject=subject,
        options=options,
        internal_error=_escaped,
        cut_short=lambda stage, reason: ExportCutShort(stage=stage, reason=reason),
        locate=lambda error: _located(error, request),
        on_stage=on_stage,
        command_line=command_line,
        family=family,
        places=lambda: _places(request),
        draw=lambda node: graph_views.around(node, dim_names),
    )
    context.environment.update(versions())
    return context


def _escaped(stage: str, error: BaseException) -> Rule:
    """The rule for an exception that escaped a stage. Capture runs code of the user in many places, such as `__getattribute__`."""
    if stage == "capture" and locations.raised_by_user(error) is not None:
        return UserCodeRaised(error=described_error(error).splitlines()[0])
    return InternalError(stage=stage, error=described_error(error))


def _note_arguments(
    context: DiagnosticContext,
    request: Request,
    old: Mapping[str, Any],
    *,
    dynamo: bool,
    dynamic_axes: Mapping[str, Any] | None,
    dynamic_shapes: Any,
) -> None:
    """Reports arguments that have no meaning here, or that have a newer form."""
    captured = isinstance(request.model, torch.export.ExportedProgram)
    reasons = {name: _OLD[name] for name in old}
    if not dynamo:
        reasons["dynamo"] = "capture is always torch.export's"
    if dynamic_axes and request.shapes.argument != "dynamic_axes":
        reasons["dynamic_axes"] = "dynamic_shapes, or the ExportedProgram, says which dims are dynamic"
    elif dynamic_axes and request.misfit_axes is None:
        instead = Fix("Pass dynamic_shapes instead.", Confidence.SAFE, snippet=request.shapes.as_source())
        place = call_sites.at(call_sites.argument(request, "dynamic_axes"), request)
        context.report(LegacyDynamicAxes(inputs=tuple(dynamic_axes)), at=place, fixes=[instead])
    if captured and dynamic_shapes is not None:
        reasons["dynamic_shapes"] = "the ExportedProgram says which dims are dynamic"
    for name, reason in reasons.items():
        context.report(ArgumentIgnored(argument=name, reason=reason), at=request.caller)


def _places(request: Request) -> tuple[Location, ...]:
    """Where the model is defined and where the export is called, places in the user's files first."""
    definition = locations.module_definition(request.model) if callable(request.model) else None
    places = [place for place in (definition, request.caller) if place is not None]
    return tuple(sorted(places, key=lambda place: not locations.is_users(place.file)))


def _located(error: BaseException, request: Request) -> Evidence:
    """The user's line behind an unexpected exception; the export's call if the stack contains no such line."""
    found = locations.at_exception(error, request.model if isinstance(request.model, torch.nn.Module) else None)
    return found if found.location is not None else Evidence(request.caller)


def _told(log: Log, *, verbose: bool | None) -> Log:
    """Returns `log`, and writes it to standard error if `verbose`."""
    if verbose:
        from rich.console import Console

        from onnxplain.diagnostics import console

        console.show_log(log, Console(stderr=True))
    return log


def subject_of(model: object) -> str:
    """The name of a model in the log: that of its class, or of the function. Files are named after it, so it is no path."""
    try:
        name = str(getattr(model, "__name__", type(model).__name__))
    except (Exception, SystemExit):  # noqa: BLE001  the model's class may do anything; `export` says what it does
        name = type(model).__name__
    return "".join(char if char.isprintable() and char not in "/\\" else "_" for char in name).strip() or "model"
