"""Checks of every log of onnxplain: as SARIF, the standard's schema, our stricter one, and rules that no schema can express."""

from __future__ import annotations

import functools
import json
import pathlib
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

from onnxplain import schemas
from onnxplain.diagnostics import Log

OASIS_SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "shared/schemas/sarif-schema-2.1.0.json"


def check_log(log: pathlib.Path | Mapping[str, Any]) -> dict[str, Any]:
    """Asserts that `log`, a file or its content, is right. Returns the content."""
    content: dict[str, Any] = dict(log) if isinstance(log, Mapping) else json.loads(pathlib.Path(log).read_text(encoding="utf-8"))
    validate(content)
    for run in content["runs"]:
        rules = run["tool"]["driver"]["rules"]
        ids = [rule["id"] for rule in rules]
        found = [result for result in run["results"] if result.get("baselineState") != "absent"]
        fixed = [result for result in run["results"] if result not in found]
        assert ids == sorted({result["ruleId"] for result in found}), "the rules are those of the results, by id"
        guids = [result["guid"] for result in run["results"]]
        assert len(set(guids)) == len(guids), "two results have one guid"
        fingerprints = [result["partialFingerprints"]["onnxplain/v1"] for result in run["results"]]
        assert len(set(fingerprints)) == len(fingerprints), "two results have one fingerprint"
        assert len({"baselineState" in result for result in run["results"]}) < 2, "all results have a state, or none"
        for result in fixed:
            assert result.get("ruleIndex") == (ids.index(result["ruleId"]) if result["ruleId"] in ids else None)
        for result in found:
            assert ids[result["ruleIndex"]] == result["ruleId"]
            _check_message(rules[result["ruleIndex"]], result)
        for notification in run["invocations"][0].get("toolExecutionNotifications", ()):
            if rule := notification.get("associatedRule"):
                assert ids[rule["index"]] == rule["id"]
        for physical in _physical_locations(content):
            _check_regions(physical)
    return content


def validate(content: Mapping[str, Any], name: str = "sarif-onnxplain") -> None:
    """Asserts that `content` is valid under the standard's schema and our schema `name`. Warns if the standard's is not available."""
    _fail_on_errors(_ours(name), content)
    if OASIS_SCHEMA.exists():
        _fail_on_errors(_oasis(), content)
    else:
        warnings.warn(f"{OASIS_SCHEMA} is missing: logs are checked against our own schema only", stacklevel=2)


def rendered(template: str, arguments: list[str]) -> str:
    """A message as VS Code renders it from a rule's template."""
    return re.sub(r"\{(\d+)\}", lambda found: arguments[int(found[1])], template)


@functools.cache
def _ours(name: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(schemas.load(name))


@functools.cache
def _oasis() -> jsonschema_rs.Validator:
    schema = json.loads(OASIS_SCHEMA.read_text(encoding="utf-8"))
    # NOTE: this keyword stands among the properties by mistake, and a list is no schema.
    del schema["definitions"]["region"]["properties"]["anyOf"]
    return jsonschema_rs.validator_for(schema)


def _fail_on_errors(validator: jsonschema_rs.Validator, content: Mapping[str, Any]) -> None:
    # NOTE: every test that exports comes here, and validators written in Python take a twentieth of the suite's time.
    errors = (
        [] if validator.is_valid(content) else [f"{error.instance_path}: {error.message[:500]}" for error in validator.iter_errors(content)]
    )
    assert not errors, "\n".join(errors)


def _check_message(rule: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    message = result["message"]
    template = rule["messageStrings"][message["id"]]["text"]
    assert rendered(template, message.get("arguments", [])) == message["text"]
    # NOTE: sarif-tools then shows one character of it.
    assert not message["text"].startswith(result["ruleId"])
    ids = [location["id"] for location in result.get("relatedLocations", ())]
    assert ids == list(range(1, len(ids) + 1))


def _check_regions(physical: Mapping[str, Any]) -> None:
    region, context = physical.get("region"), physical.get("contextRegion")
    if region is None:
        return
    start, end = (region["startLine"], region.get("startColumn", 1)), (region["endLine"], region.get("endColumn", 1 << 30))
    assert start <= end
    if context is not None:
        assert context["startLine"] <= region["startLine"]
        assert context["endLine"] >= region["endLine"]
        assert context["snippet"] != region.get("snippet")
        assert context["snippet"]["text"].count("\n") == context["endLine"] - context["startLine"]
        assert region.get("snippet", {"text": ""})["text"] in context["snippet"]["text"]


def _physical_locations(item: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(item, Mapping):
        if "artifactLocation" in item and "replacements" not in item:
            yield item
        for value in item.values():
            yield from _physical_locations(value)
    elif isinstance(item, list):
        for value in item:
            yield from _physical_locations(value)


def fell_back(log: Log) -> bool:
    """Whether an export succeeded with another strategy after the first one had failed."""
    tried = [found[1] for event in log.events if (found := re.fullmatch(r"Capturing with the strategy (.*)\.", event.text))]
    return log.succeeded and "non-strict" in tried and tried[-1] in ("strict", "draft")
