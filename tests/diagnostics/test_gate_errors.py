"""Wrong files, wrong usage and files that cannot be written keep a gate from a verdict. The exit code is never that of a verdict."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest
from gate_logs import BASELINE, LOG, VERSION, changed, run, states, text, write

pytestmark = pytest.mark.usefixtures("here")

CORRUPT: dict[str, Callable[[], str | bytes]] = {
    "empty": lambda: "",
    "truncated": lambda: text()[:-100],
    "twice": lambda: text() * 2,
    "not JSON": lambda: "<html></html>",
    "not UTF-8": lambda: text().encode("utf-16"),
    "no object": lambda: "[]",
    "not SARIF": lambda: '{"passed": true}',
    "nested": lambda: "[" * 100_000,
    "nested in a log": lambda: text().replace('"results":[', f'"results":[{"[" * 100_000}'),
    "SARIF 2.2.0": changed("version", value="2.2.0"),
    "no version": changed("version", value=None),
    "another tool's": changed("runs", 0, "tool", "driver", "name", value="ruff"),
    "a newer onnxplain's": changed("runs", 0, "tool", "driver", "semanticVersion", value="999.0.0"),
    "a later onnxplain's": changed("runs", 0, "tool", "driver", "semanticVersion", value=f"{VERSION}.1-rc.1"),
    "of no onnxplain": changed("runs", 0, "tool", "driver", "semanticVersion", value="x.y"),
    "of an unknown onnxplain": changed("runs", 0, "tool", "driver", "semanticVersion", value=None),
    "no runs": changed("runs", value=[]),
    "runs are null": lambda: json.dumps({**json.loads(text()), "runs": None}),
    "a run is a text": changed("runs", value=["x"]),
    "no results": changed("runs", 0, "results", value=None),
    "results are no list": changed("runs", 0, "results", value={}),
    "a result is a text": changed("runs", 0, "results", value=["x"]),
    "no invocation": changed("runs", 0, "invocations", value=[]),
    "of no export": changed("runs", 0, "invocations", value=None),
    "no success": changed("runs", 0, "invocations", 0, "executionSuccessful", value="false"),
    "failed without an error": changed("runs", 0, "results", value=[]),
    "of no model": changed("runs", 0, "automationDetails", value=None),
    "no fingerprints": changed("runs", 0, "results", 0, "partialFingerprints", value=None),
    "no fingerprint of ours": changed("runs", 0, "results", 0, "partialFingerprints", value={"other": "x"}),
    "a wrong fingerprint": changed("runs", 0, "results", 0, "partialFingerprints", "onnxplain/v1", value="x"),
    "no level": changed("runs", 0, "results", 0, "level", value=None),
    "a wrong level": changed("runs", 0, "results", 0, "level", value="fatal"),
    "no rule": changed("runs", 0, "results", 0, "ruleId", value=None),
    "no text": changed("runs", 0, "results", 0, "message", "text", value={}),
    "a line in words": changed("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine", value="six"),
    "line 0": changed("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine", value=0),
    "errors are left out": changed("runs", 0, "properties", value={"onnxplain/sarifProfile": "github", "onnxplain/leftOut": {"error": 1}}),
}

NO_EXPORT = {"no invocation", "of no export", "no success", "failed without an error", "errors are left out"}
"""Files that a baseline may be: they describe no export, and findings that they lack are new."""


@pytest.mark.parametrize("kind", CORRUPT)
def test_what_cannot_be_judged_never_passes(kind: str) -> None:
    write(["b  # E"], "good.sarif", model="Good")
    assert run("baseline", "accept", "good.sarif").exit_code == 0
    accepted, good = pathlib.Path(BASELINE).read_bytes(), pathlib.Path("good.sarif").read_bytes()
    write(["a  # E"])
    data = CORRUPT[kind]()
    pathlib.Path("bad.sarif").write_bytes(data if isinstance(data, bytes) else data.encode())
    commands = [
        ("gate", "bad.sarif", "--max-errors", "99"),
        ("gate", "good.sarif", "bad.sarif", "--baseline", BASELINE, "--max-errors", "99"),
        ("baseline", "accept", "good.sarif", "bad.sarif"),
    ]
    if kind not in NO_EXPORT:
        commands.append(("gate", "good.sarif", "--baseline", "bad.sarif", "--max-errors", "99"))
        commands.append(("baseline", "accept", "good.sarif", "--baseline", "bad.sarif"))
    for command in commands:
        told = run(*command)
        assert (told.exit_code, told.stdout) == (2, ""), command
        assert "bad.sarif" in told.stderr
        assert "Error: onnxplain stopped" not in told.stderr
        assert (pathlib.Path(BASELINE).read_bytes(), pathlib.Path("good.sarif").read_bytes()) == (accepted, good), "nothing is half-written"


@pytest.mark.parametrize("rules", ["x", {"id": "OXP1002"}, ["x"], [["x"]], [True], [{}], [{"id": ["x"]}], [{"id": None}]], ids=str)
def test_rules_that_no_export_records_are_refused(rules: object) -> None:
    write(["a  # E", "b  # W"], "known.sarif")
    write(["a  # E"])
    damaged = changed("runs", 0, "tool", "driver", "rules", value=rules)()
    pathlib.Path(LOG).write_text(damaged, encoding="utf-8")
    told = run("gate", LOG, "--baseline", "known.sarif")
    assert (told.exit_code, told.stdout) == (2, "")
    assert LOG in told.stderr
    assert "Error: onnxplain stopped" not in told.stderr
    assert pathlib.Path(LOG).read_text(encoding="utf-8") == damaged


OUTPUT = {"location": {"uri": "net.onnx", "uriBaseId": "SRCROOT"}, "length": 1, "roles": ["resultFile"], "hashes": {"sha-256": "0a"}}
"""An output as a log records it."""


@pytest.mark.parametrize(
    "outputs",
    [
        {},
        ["x"],
        [{}],
        [OUTPUT | {"location": {"uriBaseId": "SRCROOT"}}],
        [OUTPUT | {"location": {"uri": 5, "uriBaseId": "SRCROOT"}}],
        [OUTPUT | {"length": "x"}],
        [OUTPUT | {"hashes": 5}],
        [OUTPUT | {"length": 3, "hashes": {"sha-256": 5}}],
    ],
)
def test_outputs_that_no_export_records_are_refused(outputs: object) -> None:
    pathlib.Path("net.onnx").write_text("net", encoding="utf-8")
    write(["a  # W"])
    pathlib.Path("bad.sarif").write_text(changed("runs", 0, "artifacts", value=outputs)(), encoding="utf-8")
    told = run("gate", "bad.sarif")
    assert (told.exit_code, told.stdout) == (2, "")
    assert "bad.sarif" in told.stderr
    assert "Error: onnxplain stopped" not in told.stderr


def test_an_output_that_another_file_has_replaced_is_found() -> None:
    """Among outputs that tell nothing: no models, without a hash, elsewhere, not reachable, missing, as they were."""
    same, missing, elsewhere = (dict(OUTPUT["location"], uri=uri) for uri in ("same.onnx", "missing.onnx", "elsewhere.onnx"))  # type: ignore[call-overload]
    for name in ("net", "same", "elsewhere"):
        pathlib.Path(f"{name}.onnx").write_text("n", encoding="utf-8")
    digest = {"sha-256": hashlib.sha256(b"n").hexdigest()}
    harmless = [
        OUTPUT | {"roles": ["debugOutputFile"]},
        {"location": OUTPUT["location"]},
        OUTPUT | {"hashes": {}},
        OUTPUT | {"location": {**elsewhere, "uriBaseId": "ELSEWHERE"}},
        OUTPUT | {"location": {**elsewhere, "uri": "../elsewhere.onnx"}},
        OUTPUT | {"location": missing},
        OUTPUT | {"location": same, "hashes": digest},
    ]
    write(["a"])
    for outputs, exit_code in ((harmless, 0), ([*harmless, OUTPUT], 1), ([OUTPUT | {"hashes": digest, "length": 2}], 1)):
        pathlib.Path("log.sarif").write_text(changed("runs", 0, "artifacts", value=outputs)(), encoding="utf-8")
        told = run("gate", "log.sarif", "--max-warnings", "0")
        assert (told.exit_code, "OXP5" in told.stdout) == (exit_code, bool(exit_code)), told.output


def test_an_output_that_cannot_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: pathlib.Path) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    # NOTE: for root, who may run the tests, no file is unreadable.
    monkeypatch.setattr("onnxplain.diagnostics.gate.outputs.sha256", refused)
    pathlib.Path("net.onnx").write_text("n", encoding="utf-8")
    write(["a  # W"])
    pathlib.Path("bad.sarif").write_text(changed("runs", 0, "artifacts", value=[OUTPUT])(), encoding="utf-8")
    told = run("gate", "bad.sarif", "--max-warnings", "1")
    assert (told.exit_code, told.stdout) == (2, "")
    assert "net.onnx" in told.stderr


def test_an_output_whose_name_no_file_can_have_tells_nothing() -> None:
    write(["a  # W"])
    output = OUTPUT | {"location": {"uri": "n" * 5_000, "uriBaseId": "SRCROOT"}}
    pathlib.Path("long.sarif").write_text(changed("runs", 0, "artifacts", value=[output])(), encoding="utf-8")
    assert run("gate", "long.sarif", "--max-warnings", "1").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("missing.sarif",),
        ("logs/*.sarif",),
        (LOG, "missing.sarif"),
        (".",),
        (LOG, LOG),
        (LOG, f"./{LOG}"),
        (LOG, "link.sarif"),
        (LOG, "--baseline", LOG),
        (LOG, "--baseline", "missing.sarif"),
        (LOG, "--baseline", "."),
        (LOG, "--max-errors", "-1"),
        (LOG, "--max-warnings", "-1"),
        (LOG, "--max-errors", "many"),
        (LOG, "--format", "html"),
        (LOG, "-o", LOG),
        (LOG, "-o", "."),
        (LOG, "-o", f"{LOG}/report.xml"),
        (LOG, "--baseline", BASELINE, "-o", BASELINE),
        (BASELINE,),
    ],
)
def test_bad_usage(arguments: Sequence[str]) -> None:
    write([])
    pathlib.Path("link.sarif").symlink_to(LOG)
    assert run("baseline", "accept", LOG).exit_code == 0
    before = pathlib.Path(LOG).read_bytes()
    told = run("gate", *arguments)
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr
    assert pathlib.Path(LOG).read_bytes() == before


@pytest.mark.parametrize("version", ["0.0.1", "0.1.0", VERSION])
def test_older_logs_are_judged(version: str) -> None:
    write([])
    pathlib.Path(LOG).write_text(changed("runs", 0, "tool", "driver", "semanticVersion", value=version)(), encoding="utf-8")
    assert run("gate", LOG).exit_code == 0


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), RuntimeError("boom"), MemoryError(), SystemExit(1), BrokenPipeError(), OSError("x")]
)
@pytest.mark.parametrize("command", [("gate",), ("baseline", "accept")])
def test_whatever_stops_it_is_no_verdict(command: Sequence[str], error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    write([])

    def stop(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("onnxplain.cli.gate.judge_logs", stop)
    monkeypatch.setattr("onnxplain.cli.baseline.accept_findings", stop)
    assert run(*command, LOG).exit_code == 2


@pytest.mark.parametrize("form", ["text", "github", "json"])
def test_a_pipe_that_nobody_reads(form: str) -> None:
    write(["a  # E"])
    reading, writing = os.pipe()
    os.close(reading)
    try:
        told = subprocess.run(
            [sys.executable, "-m", "onnxplain", "gate", LOG, "--max-errors", "999", "--format", form],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert told.returncode == 2
    assert b"Traceback" not in told.stderr


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [(LOG,), (LOG, "--format", "json"), ("missing.sarif",)])
def test_output_that_cannot_be_written(arguments: Sequence[str]) -> None:
    write([])
    with pathlib.Path("/dev/full").open("w") as full:
        told = subprocess.run([sys.executable, "-m", "onnxplain", "gate", *arguments], stdout=full, stderr=full, check=False)
    assert told.returncode == 2


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(("arguments", "code"), [(("gate", LOG), 2), (("report", LOG), 1), (("rules",), 1)])
def test_a_full_disk_is_no_bug_of_ours(arguments: Sequence[str], code: int) -> None:
    write([])
    with pathlib.Path("/dev/full").open("w") as full:
        told = subprocess.run([sys.executable, "-m", "onnxplain", *arguments], stdout=full, stderr=subprocess.PIPE, check=False, text=True)
    assert told.returncode == code
    assert os.strerror(errno.ENOSPC) in told.stderr
    assert "bug" not in told.stderr


def read_only(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o444)
    access = os.access
    # NOTE: for root, which CI may use, no file is read-only.
    monkeypatch.setattr(os, "access", lambda file, mode: pathlib.Path(file) != path.resolve() and access(file, mode))


@pytest.mark.parametrize("file", [LOG, "other.sarif"])
def test_a_log_that_cannot_be_written(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write([])
    write([], "other.sarif", model="Other")
    run("baseline", "accept", LOG, "other.sarif")
    before = pathlib.Path(file).read_bytes()
    read_only(pathlib.Path(file), monkeypatch)
    told = run("gate", LOG, "other.sarif", "--baseline", BASELINE)
    assert (told.exit_code, told.stdout) == (2, "")
    assert file in told.stderr
    assert pathlib.Path(file).read_bytes() == before
    assert run("gate", LOG, "other.sarif").exit_code == 0, "without a baseline nothing is written"


def test_a_baseline_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    write(["a  # E"])
    run("baseline", "accept", LOG)
    before = pathlib.Path(BASELINE).read_bytes()
    read_only(pathlib.Path(BASELINE), monkeypatch)
    write(["b  # E"])
    told = run("baseline", "accept", LOG)
    assert (told.exit_code, told.stdout) == (2, "")
    assert BASELINE in told.stderr
    assert pathlib.Path(BASELINE).read_bytes() == before


def test_a_log_from_a_pipe_has_no_place_for_states() -> None:
    write(["a  # W"])
    command = [sys.executable, "-m", "onnxplain", "gate", "/dev/stdin"]
    log = pathlib.Path(LOG).read_bytes()
    assert subprocess.run(command, input=log, capture_output=True, check=False).returncode == 0
    run("baseline", "accept", LOG)
    told = subprocess.run([*command, "--baseline", BASELINE], input=log, capture_output=True, check=False)
    assert told.returncode == 2
    assert b"/dev/stdin" in told.stderr


def test_a_link_to_a_log_stays_a_link() -> None:
    write(["a  # E"])
    pathlib.Path("link.sarif").symlink_to(LOG)
    run("baseline", "accept", LOG)
    assert run("gate", "link.sarif", "--baseline", BASELINE).exit_code == 0
    assert pathlib.Path("link.sarif").is_symlink()
    assert states() == [("unchanged", 1)]


def test_help_names_the_exit_codes() -> None:
    told = run("gate", "--help").stdout.partition("Exit codes:")[2]
    assert re.findall(r"^ +(\d+)  \w", told, re.MULTILINE) == ["0", "1", "2"]
