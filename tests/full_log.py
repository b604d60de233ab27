"""A log with all that a log of ours can have, made from the committed samples: no test that needs it has to export."""

from __future__ import annotations

import copy
import json
import pathlib
from typing import Any

SAMPLES = pathlib.Path(__file__).parents[1] / "vscode-samples"
SOURCES = ("tracking.py", "several_problems.py")
"""The files of the samples that the log has edits of."""

Json = dict[str, Any]


def full_log() -> Json:
    """The log."""
    first, second = (
        json.loads((SAMPLES / f".sarif/{name}.sarif").read_text(encoding="utf-8")) for name in ("several_problems", "no_translation")
    )
    (run,), (other,) = first["runs"], second["runs"]
    result = run["results"][0]
    result |= {name: other["results"][0][name] for name in ("codeFlows", "graphs", "relatedLocations", "occurrenceCount")}
    result["properties"]["notes"] = ["A note.", "A note with lines:\nthe second"]
    result["attachments"] = [{"description": {"text": "x"}, "artifactLocation": {"uri": "x"}}]
    result["taxa"] = [{"id": "x", "toolComponent": {"name": "x"}}]
    suppressed = copy.deepcopy(result)
    suppressed["suppressions"] = [{"kind": "inSource", "justification": "x", "location": copy.deepcopy(result["locations"][0])}]
    suppressed["properties"]["blocking"] = False
    run["results"].append(suppressed)
    run["artifacts"] = [
        {"location": {"uri": "x.onnx", "uriBaseId": "SRCROOT"}, "length": 1, "roles": ["resultFile"], "hashes": {"sha-256": "0a"}}
    ]
    run["invocations"][0] |= {"commandLine": "onnxplain export x.py:build", "workingDirectory": {"uri": "x/", "uriBaseId": "SRCROOT"}}
    run["properties"]["onnxplain/profile"] = "x"
    run["properties"]["onnxplain/options"] = {"ignore": ["OXP1001"]}
    return first
