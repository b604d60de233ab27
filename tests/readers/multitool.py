"""Microsoft's SARIF multitool: the standard's rules and GitHub's."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from typing import Any

from .node import HERE, MODULES

_PROGRAM = MODULES / "@microsoft" / f"sarif-multitool-{sys.platform}" / "Sarif.Multitool"


@dataclasses.dataclass(frozen=True)
class Complaint:
    """A message of the multitool about a log."""

    log: pathlib.Path
    rule: str
    text: str


def validate(logs: Sequence[pathlib.Path], folder: pathlib.Path) -> list[Complaint]:
    """The complaints about `logs`, from one call. `folder` is for temporary files."""
    output = folder / "told.sarif"
    rules, levels = ("--rule-kind", "Sarif;Ghas"), ("--level", "Error;Warning;Note")
    # NOTE: its console output fails at its rule GH1001, which has one placeholder too many.
    done = _run(
        "validate", *map(str, logs), "--config", str(HERE / "ghas.xml"), *rules, *levels, "--quiet", "true", "--output", str(output)
    )
    (run,) = json.loads(output.read_text(encoding="utf-8-sig"))["runs"]
    (invocation,) = run["invocations"]
    # NOTE: it returns 0 whatever it finds, and if it left a log out; these tell, beside that ghas.xml turns a rule off.
    told = [*invocation.get("toolConfigurationNotifications", ()), *invocation.get("toolExecutionNotifications", ())]
    broken = [each["message"]["text"] for each in told if each["descriptor"]["id"] != "WRN999.RuleExplicitlyDisabled"]
    assert not broken, "\n".join(broken)
    assert done.returncode == 0, done.stderr
    templates = {rule["id"]: rule["messageStrings"] for rule in run["tool"]["driver"].get("rules", ())}
    return [_complaint(result, templates) for result in run["results"]]


def with_line_hashes(log: pathlib.Path, folder: pathlib.Path) -> dict[str, Any]:
    """The content of `log` with the multitool's own hashes of its lines, as GitHub has them."""
    told = folder / "hashed.sarif"
    _run("rewrite", str(log), "--insert", "RollingHashPartialFingerprints", "--output", str(told))
    content: dict[str, Any] = json.loads(told.read_text(encoding="utf-8-sig"))
    return content


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    # NOTE: it is a .NET program, which otherwise needs a library for languages.
    environment = os.environ | {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
    command = [_PROGRAM, *arguments, "--log", "ForceOverwrite"]
    for _ in range(30):
        try:
            return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        except OSError as error:
            # NOTE: npm has just written the program, and may still have it open.
            if error.errno != errno.ETXTBSY:
                raise
            time.sleep(1)
    raise TimeoutError(f"{_PROGRAM} is still being written")


def _complaint(result: dict[str, Any], templates: dict[str, Any]) -> Complaint:
    message, (location,) = result["message"], result["locations"]
    arguments = message.get("arguments", [])
    template = templates[result["ruleId"]][message["id"]]["text"]
    text = re.sub(r"\{(\d+)\}", lambda found: arguments[int(found[1])] if int(found[1]) < len(arguments) else found[0], template)
    uri = location["physicalLocation"]["artifactLocation"]["uri"]
    return Complaint(pathlib.Path(urllib.request.url2pathname(uri.removeprefix("file://"))), result["ruleId"], text)
