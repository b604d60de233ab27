"""Runs one exporter on one case, in a separate process, and returns what a user got."""

from __future__ import annotations

import linecache
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import shutil
import tempfile
import time
import warnings
from collections.abc import Sequence
from typing import Any

from . import case as cases
from .case import Case

LIMIT = 180
"""The seconds that a case may take, without its fixes."""

USER = pathlib.Path(__file__).with_name("user.py")
"""The script that exports a case where there is none beside it."""

_ROUNDS = 3
"""How many times findings after a fix are fixed as well."""

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    ["onnxplain.pipeline", "onnxplain.api", "onnxplain.diagnostics.sarif", "onnxplain.ops", "onnxruntime", "onnxscript", "torch._dynamo"]
)


def run(who: str, case: Case, logs: pathlib.Path | None = None) -> dict[str, Any]:
    """The outcome of `who`, ours or theirs, for `case`; for ours, also the outcomes after its fixes.

    `logs` is the folder where ours saves its SARIF log, in a folder for each profile.
    """
    result = _in_process(who, case.path, logs)
    edits = result.pop("edits_to_try", [])
    if edits:
        result["fixed"] = [_fixed(case, each) for each in edits]
    return result


def _in_process(who: str, path: pathlib.Path, logs: pathlib.Path | None = None) -> dict[str, Any]:
    receiver, sender = _PROCESSES.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        terminal = pathlib.Path(folder, "terminal.txt")
        process = _PROCESSES.Process(target=_answer, args=(who, path, logs, sender, terminal), daemon=True)
        process.start()
        sender.close()
        try:
            result: dict[str, Any] = receiver.recv() if receiver.poll(LIMIT) else {"outcome": "hang"}
        except EOFError:
            result = {"outcome": "crash"}
        process.join(10)
        process.kill()
        process.join()
        result["traceback"] = "Traceback (most recent call last)" in terminal.read_text(errors="replace") if terminal.exists() else False
    return result


def _answer(
    who: str, path: pathlib.Path, logs: pathlib.Path | None, sender: multiprocessing.connection.Connection, terminal: pathlib.Path
) -> None:
    with terminal.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        warnings.simplefilter("ignore")
        # NOTE: a log names files as seen from the checkout around the current folder.
        os.chdir(path.parent)
        case = cases.read(path)
        sender.send(ours(case, logs) if who == "ours" else theirs(case))


def ours(case: Case, logs: pathlib.Path | None = None) -> dict[str, Any]:
    """onnxplain's export, verified, and compared with eager PyTorch on the case's other inputs."""
    import torch
    from told import told

    import onnxplain
    from onnxplain.diagnostics import sarif as sink

    started = time.perf_counter()
    module = cases.load(case.path)
    torch.manual_seed(0)
    model, args, kwargs, options = cases.build(module)
    script = case.path.with_name(USER.name)
    user = cases.load(script if script.exists() else USER)
    other_inputs = True
    sarif = logs / "full" / f"{case.name}.sarif" if logs else None
    try:
        program = user.export(model, args, kwargs=kwargs, verify=True, sarif=sarif, **explaining(case), **options)
        log, outcome = program.diagnostics, "exported"
        if hasattr(module, "second_inputs"):
            other_inputs = all(_equal(model, program, *each) for each in module.second_inputs())
    except onnxplain.ExportFailed as failed:
        log, outcome = failed.log, "failed"
    seconds = time.perf_counter() - started
    if logs:
        sink.write(log, logs / "github" / f"{case.name}.sarif", profile="github")
    found = [finding for finding in log.active if finding.location is not None and finding.location.file == str(case.path)]
    first = log.active[0] if log.active else None
    # A case that must fail is judged by its first error, other cases by any finding on the line.
    # A case without a mark leaves the line open.
    here = [finding for finding in found if finding.location is not None and (not case.lines or finding.location.line in case.lines)]
    judged = first if case.expect == "error" or not here else here[0]
    lines = {finding.location.line for finding in here if finding.location is not None}
    result: dict[str, Any] = {
        "outcome": outcome,
        "rule": judged.rule.id if judged else "",
        "level": judged.level.value if judged else "ok",
        "worst": first.level.value if first else "ok",
        "line": judged in here,
        "all_lines": case.lines <= lines,
        "stage": judged is not None and (not case.stages or judged.stage in case.stages),
        "internal": any(finding.rule.id == "OXP0001" for finding in log.findings),
        "action": judged is not None and bool(judged.fixes),
        "edits": sum(bool(fix.edits) for fix in judged.fixes) if judged else 0,
        "other_inputs": other_inputs,
        "seconds": seconds,
        "message": str(judged.rule) if judged else "",
        "findings": [(finding.rule.id, finding.location.line if finding.location else None) for finding in log.active],
        "told": told(log.findings, str(user.__file__)),
    }
    ways: list[Any] = []
    if judged is not None and case.expect == "error" and result["edits"]:
        # Independent problems are fixed together: one fix for each of the other problems.
        others = [finding for finding in log.active if finding is not judged and finding.fails]
        ways = [next((fix.edits for fix in finding.fixes if fix.edits), ()) for finding in others]
        rest = [edit for way in ways for edit in way]
    if judged is not None and case.expect == "error" and result["edits"] and all(ways):
        result["edits_to_try"] = [(*fix.edits, *(edit for edit in rest if edit not in fix.edits)) for fix in judged.fixes if fix.edits]
    return result


def explaining(case: Case) -> dict[str, Any]:
    """The options with which an export of `case` explains the loop or the branch that the case expects to fail, and does not rewrite it."""
    return {} if case.expect == "ok" else {"control_flow": "report"}


def _equal(model: Any, program: Any, args: Any, kwargs: Any) -> bool:
    """Whether the exported model gives the same outputs as eager PyTorch for other inputs."""
    import torch
    from torch.utils import _pytree as pytree

    # NOTE: the fast path of torch's transformer layers gives 0 for padded positions, and their code does not.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            # A model writes to its inputs, such as a cache.
            own_args, own_kwargs = pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs))
            expected = [each for each in pytree.tree_leaves(model(*own_args, **own_kwargs)) if isinstance(each, torch.Tensor)]
        given = program(*args, **kwargs)
        torch.testing.assert_close(list(given), expected, rtol=1e-3, atol=1e-3, equal_nan=True)
    except Exception:  # noqa: BLE001  the score counts a program that fails in any way
        return False
    return True


def _fixed(case: Case, edits: Sequence[Any]) -> str:
    """The outcome of a case after `edits`, and after the edits of later findings: exported, or the rule that still fails it."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / case.path.name
        shutil.copy(case.path, path)
        again: dict[str, Any] = {}
        for _ in range(_ROUNDS):
            if any(edit.file not in (str(case.path), str(path)) for edit in edits):
                return "another file"
            lines = path.read_text(encoding="utf-8").splitlines()
            for edit in sorted(edits, key=lambda edit: (edit.region.line, edit.region.column or 0), reverse=True):
                lines[edit.region.line - 1 : edit.region.last_line] = edit.lines()[1]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            linecache.checkcache(str(path))
            again = _in_process("ours", path)
            if again["outcome"] == "exported" and again["worst"] != "error":
                return "exported"
            edits = next(iter(again.get("edits_to_try", ())), ())
            if not edits:
                break
        return f"{again['outcome']} {again.get('rule', '')}"


def theirs(case: Case) -> dict[str, Any]:
    """The outcome of torch.onnx.export, and whether its exception or its warnings name the line."""
    import onnx
    import torch

    started = time.perf_counter()
    model, args, kwargs, options = cases.build(cases.load(case.path))
    options = {name: value for name, value in options.items() if name != "verify"}
    wanted = {f"{case.path.name}:{line}" for line in case.lines} | {f'{case.path.name}", line {line}' for line in case.lines}
    result: dict[str, Any] = {"outcome": "exported", "line": False}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            program = torch.onnx.export(model, args, kwargs=kwargs, dynamo=True, verbose=False, **options)
            assert program is not None
            onnx.checker.check_model(program.model_proto, full_check=True)
        except Exception as error:  # noqa: BLE001  whatever torch.onnx.export raises is its result here
            result["outcome"] = "failed"
            result["line"] = any(each in str(error) for each in wanted)
    result["line"] = result["line"] or any(each.filename == str(case.path) and each.lineno in case.lines for each in told)
    result["seconds"] = time.perf_counter() - started
    return result
