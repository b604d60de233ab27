"""Runs one exporter on one case, in this process, and tells as JSON what a user got."""

from __future__ import annotations

import json
import pathlib
import shutil
import sys
import tempfile
import time
import warnings
from typing import Any

from . import case as cases
from .case import Case

_RANK = ("ok", "note", "warning", "error")


def ours(case: Case) -> dict[str, Any]:
    """onnxplain's export, verified; then every fix that can be applied, applied and exported again."""
    import onnxplain

    started = time.perf_counter()
    module = cases.load(case.path)
    model, args, kwargs, options = cases.build(module)
    other_inputs = True
    try:
        program = onnxplain.export(model, args, kwargs=kwargs, verify=True, **options)
        log, outcome = program.diagnostics, "exported"
        if hasattr(module, "second_inputs"):
            other_inputs = all(_equal(model, program, *each) for each in module.second_inputs())
    except onnxplain.ExportFailed as failed:
        log, outcome = failed.log, "failed"
    seconds = time.perf_counter() - started
    found = [finding for finding in log.active if finding.location is not None and finding.location.file == str(case.path)]
    first = log.active[0] if log.active else None
    # A case that must fail is judged by its first error, another one by whatever stands on its line.
    here = [finding for finding in found if finding.location is not None and finding.location.line in case.lines]
    judged = first if case.expect == "error" or not here else here[0]
    result: dict[str, Any] = {
        "outcome": outcome,
        "rule": judged.rule.id if judged else "",
        "level": judged.level.value if judged else "ok",
        "worst": first.level.value if first else "ok",
        "line": judged in here,
        "stage": judged is not None and (not case.stages or judged.stage in case.stages),
        "internal": any(finding.rule.id == "OXP0001" for finding in log.findings),
        "action": judged is not None and bool(judged.fixes),
        "edits": sum(bool(fix.edits) for fix in judged.fixes) if judged else 0,
        "other_inputs": other_inputs,
        "seconds": seconds,
        "message": str(judged.rule) if judged else "",
    }
    if judged is not None and result["edits"]:
        edits = [fix.edits for fix in judged.fixes if fix.edits]
        result["fixed"] = [_fixed(case, each) for each in edits]
    return result


def _equal(model: Any, program: Any, args: Any, kwargs: Any) -> bool:
    """Whether the exported model gives what eager PyTorch gives for other inputs."""
    import torch
    from torch.utils import _pytree as pytree

    with torch.no_grad():
        expected = [each for each in pytree.tree_leaves(model(*args, **kwargs)) if isinstance(each, torch.Tensor)]
    try:
        given = program(*args, **kwargs)
        torch.testing.assert_close(list(given), expected, rtol=1e-3, atol=1e-3, equal_nan=True)
    except Exception:
        return False
    return True


def _fixed(case: Case, edits: Any) -> str:
    """What comes of a case after `edits`: exported, or why not."""
    import onnxplain
    from onnxplain.diagnostics.text import change

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"fixed_{case.path.name}"
        shutil.copy(case.path, path)
        lines = path.read_text(encoding="utf-8").splitlines()
        for edit in sorted(edits, key=lambda edit: edit.region.line, reverse=True):
            if edit.file != str(case.path):
                return "another file"
            lines[edit.region.line - 1 : edit.region.last_line] = change(edit)[1]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            model, args, kwargs, options = cases.build(cases.load(path))
            log = onnxplain.export(model, args, kwargs=kwargs, verify=True, **options).diagnostics
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
        worse = [finding for finding in log.active if finding.level.value == "warning"]
        return "exported" if not worse else f"exported, {worse[0].rule.id}"


def theirs(case: Case) -> dict[str, Any]:
    """torch.onnx.export, and whether its exception or its warnings name the line."""
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
        except Exception as error:
            result["outcome"] = "failed"
            result["line"] = any(each in str(error) for each in wanted)
    result["line"] = result["line"] or any(each.filename == str(case.path) and each.lineno in case.lines for each in told)
    result["seconds"] = time.perf_counter() - started
    return result


def main() -> None:
    """`python -m scoreboard.run ours|theirs PATH`; the last line of the output is the result."""
    who, path = sys.argv[1:]
    case = cases.read(pathlib.Path(path))
    warnings.simplefilter("ignore")
    print("\n" + json.dumps({"ours": ours, "theirs": theirs}[who](case)))  # noqa: T201


if __name__ == "__main__":
    main()
