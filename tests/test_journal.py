"""Exports that something kills or interrupts: what the log tells, what stays on the disk, and how the process ends."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import sys
import time
from multiprocessing.process import BaseProcess
from typing import Any

import psutil
import pytest
import warm
from logs import GRAPH, context
from marks import needs_pathlib
from sarif_checks import check_log

from onnxplain.diagnostics import Evidence, sarif
from onnxplain.journal import Journal
from onnxplain.rules import TrainingMode

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and file marks of POSIX")

MODEL = """\
import ctypes
import os
import signal
import sys
import time

import torch


class Net(torch.nn.Module):
    def __init__(self, end):
        super().__init__()
        self.end = end
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        if self.end == "sleep":
            print("ready", flush=True) or time.sleep(60)  # runs
        elif self.end == "exit":
            ctypes.CDLL(None)._exit(0)
        elif self.end == "sys.exit":
            sys.exit(0)  # exits
        elif self.end == "os._exit":
            os._exit(0)  # exits at once
        elif self.end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.end == "crash":
            ctypes.string_at(0)
        elif self.end == "close":
            os.closerange(3, 200)
        return self.layer(x)


def build(end=os.environ.get("END")):
    return Net(end), (torch.ones(2, 4),)
"""
SCRIPT = """\
import net, onnxplain
model, args = net.build()
onnxplain.export(model, args, "net.onnx", sarif="net.sarif", report=True, fallback=True)
"""
FORWARD = MODEL.splitlines().index("    def forward(self, x):") + 1


def line_of(mark: str) -> int:
    return next(number for number, line in enumerate(MODEL.splitlines(), start=1) if line.endswith(f"# {mark}"))


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "net.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


def start(folder: pathlib.Path, end: str, *arguments: str) -> contextlib.AbstractContextManager[BaseProcess]:
    return warm.started(folder, arguments or ("script.py",), {"END": end})


def command_line(folder: pathlib.Path, end: str) -> contextlib.AbstractContextManager[BaseProcess]:
    files = ("-o", "net.onnx", "--sarif", "net.sarif", "--report", "net.md")
    return start(folder, end, "-m", "onnxplain", "export", "net.py:build", *files)


def ended(process: BaseProcess, folder: pathlib.Path) -> tuple[int | None, str]:
    """How the process ended, and what it told."""
    process.join(120)
    return process.exitcode, (folder / "out.txt").read_text(encoding="utf-8")


def wait_until_ready(folder: pathlib.Path) -> None:
    """Waits until the model sleeps."""
    deadline = time.monotonic() + 120
    while not (folder / "out.txt").exists() or "ready" not in (folder / "out.txt").read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def leftovers(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def findings(folder: pathlib.Path) -> list[tuple[str, int]]:
    """The rule and the line of each result in the log."""
    (run,) = check_log(folder / "net.sarif")["runs"]
    return [
        (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]["startLine"])
        for result in run["results"]
        if result["level"] != "note"
    ]


def invocation(folder: pathlib.Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((folder / "net.sarif").read_text(encoding="utf-8"))["runs"][0]["invocations"][0]
    return content


@pytest.mark.parametrize(("end", "code"), [("exit", 0), ("kill", -signal.SIGKILL), ("crash", -signal.SIGSEGV)])
def test_log_of_a_killed_export_tells_the_stage_and_what_was_found(folder: pathlib.Path, end: str, code: int) -> None:
    with start(folder, end) as process:
        assert ended(process, folder)[0] == code
    (run,) = check_log(folder / "net.sarif")["runs"]
    found = [(each["ruleId"], each["locations"][0]["physicalLocation"]["region"]["startLine"]) for each in run["results"]]
    assert found[0] == ("OXP0002", FORWARD)
    assert [rule for rule, _ in found[1:]] == ["OXP1010"], "the ignored argument was found before"
    assert run["properties"]["onnxplain/stages"][-1]["name"] == "capture"
    assert invocation(folder)["executionSuccessful"] is False
    assert not {"exitCode", "endTimeUtc"} & {*invocation(folder)}
    commands = {
        "gate net.sarif": 2,
        "gate --max-errors 9 net.sarif": 2,
        "baseline accept net.sarif": 2,
        "report net.sarif": 0,
        "fix net.sarif": 0,
    }
    for command, expected in commands.items():
        with start(folder, "", "-m", "onnxplain", *command.split()) as other:
            code_of_command, told = ended(other, folder)
        assert (code_of_command, "Traceback" in told) == (expected, False), command
    assert leftovers(folder), "a killed process cannot remove its files"
    with start(folder, "") as again:
        assert ended(again, folder)[0] == 0
    assert not leftovers(folder)
    assert findings(folder) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_end_the_command_with_log_and_report(folder: pathlib.Path, number: signal.Signals, code: int) -> None:
    with command_line(folder, "sleep") as process:
        wait_until_ready(folder)
        assert process.pid is not None
        os.kill(process.pid, number)
        code_of_command, told = ended(process, folder)
    assert (code_of_command, "Traceback" in told) == (code, False)
    assert findings(folder) == [("OXP0002", line_of("runs"))]
    assert invocation(folder)["exitSignalName"] == number.name
    assert (folder / "net.md").exists()
    assert not leftovers(folder)
    assert not (folder / "net.onnx").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_program_as_they_would_without_an_export(folder: pathlib.Path, number: signal.Signals) -> None:
    with start(folder, "sleep") as process:
        wait_until_ready(folder)
        assert process.pid is not None
        os.kill(process.pid, number)
        assert ended(process, folder)[0] == -number
    assert findings(folder) == [("OXP0002", line_of("runs"))]
    assert not leftovers(folder)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_repeated_signals_do_not_interrupt_the_end(folder: pathlib.Path, number: signal.Signals) -> None:
    with command_line(folder, "sleep") as process:
        wait_until_ready(folder)
        assert process.pid is not None
        # NOTE: the process may end between two signals.
        with contextlib.suppress(ProcessLookupError):
            for _ in range(200):
                if process.is_alive():
                    os.kill(process.pid, number)
                    time.sleep(0.002)
        # NOTE: once everything is written, a further signal ends the process as usual.
        assert ended(process, folder)[0] in (128 + number, -number)
    assert findings(folder) == [("OXP0002", line_of("runs"))]
    assert invocation(folder)["exitSignalName"] == number.name
    assert (folder / "net.md").exists()
    assert not leftovers(folder)


@pytest.mark.parametrize(("end", "mark"), [("sys.exit", "exits"), ("os._exit", "exits at once")])
def test_a_model_that_exits_does_not_look_like_a_success(folder: pathlib.Path, end: str, mark: str) -> None:
    with command_line(folder, end) as process:
        assert ended(process, folder)[0] == 1
    assert findings(folder) == [("OXP1005", line_of(mark))]


def test_a_model_may_close_files_that_are_not_its_own(folder: pathlib.Path) -> None:
    with command_line(folder, "close") as process:
        assert ended(process, folder)[0] == 0
    assert findings(folder) == []
    assert invocation(folder)["executionSuccessful"] is True
    assert not leftovers(folder)


def test_no_export_removes_the_files_of_a_living_one(folder: pathlib.Path) -> None:
    with start(folder, "sleep") as living:
        wait_until_ready(folder)
        held = leftovers(folder)
        assert held
        with start(folder, "") as other:
            assert ended(other, folder)[0] == 0
        assert leftovers(folder) == held
        assert living.is_alive()
    with start(folder, "") as other:
        assert ended(other, folder)[0] == 0
    assert not leftovers(folder)


REPRO = """\
import torch, onnxplain


class Net(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x


onnxplain.export(Net(), (torch.ones(2),), sarif="net.sarif", repro="net.repro.py", control_flow="report")
"""


def test_log_is_complete_before_the_script_runs_and_children_end_with_the_export(folder: pathlib.Path) -> None:
    (folder / "script.py").write_text(REPRO, encoding="utf-8")
    with start(folder, "") as process:
        family = psutil.Process(process.pid)
        deadline = time.monotonic() + 120
        children: list[psutil.Process] = []
        while not children and time.monotonic() < deadline:
            time.sleep(0.02)
            with contextlib.suppress(psutil.Error):
                children = [child for child in family.children(recursive=True) if "trial_host" in " ".join(child.cmdline())]
        assert children, "the script never ran"
        complete = invocation(folder)
    assert complete["exitCode"] == 1
    assert [rule for rule, _ in findings(folder)] == ["OXP1001"]
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive


def test_the_script_of_a_killed_export_is_removed_by_the_next(folder: pathlib.Path) -> None:
    temporary = folder / "temporary"
    temporary.mkdir()
    setting = f"import tempfile\ntempfile.tempdir = {str(temporary)!r}\n"
    (folder / "script.py").write_text(setting + REPRO, encoding="utf-8")
    with start(folder, "") as process:
        assert process.pid is not None
        deadline = time.monotonic() + 120
        while not list(temporary.rglob("repro.py")) and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        ended(process, folder)
    assert list(temporary.rglob("repro.py")), "a killed process cannot remove its files"
    (folder / "script.py").write_text(setting + SCRIPT, encoding="utf-8")
    with start(folder, "") as process:
        assert ended(process, folder)[0] == 0
    assert not list(temporary.rglob("repro.py"))


def test_gate_tells_a_model_that_another_export_replaced(folder: pathlib.Path) -> None:
    for log, opset in {"net.sarif": 20, "other.sarif": 21}.items():
        script = SCRIPT.replace("net.sarif", log).replace("fallback=True", f"opset_version={opset}")
        (folder / "script.py").write_text(script, encoding="utf-8")
        with start(folder, "") as process:
            assert ended(process, folder)[0] == 0
    verdicts = {}
    for log in ("net.sarif", "other.sarif"):
        with start(folder, "", "-m", "onnxplain", "gate", "--max-warnings", "0", "--format", "json", "-o", "gate.json", log) as gate:
            code = ended(gate, folder)[0]
        told = json.loads((folder / "gate.json").read_text(encoding="utf-8"))
        verdicts[log] = (code, [each["rule"] for each in told["findings"]])
    assert verdicts == {"net.sarif": (1, ["OXP5006"]), "other.sarif": (0, [])}


STAGE = "passes"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds. Writing the text of a log takes one second."""
    seconds, to_json = [5.0], sarif.to_json

    def slow(*args: Any, **options: Any) -> str:
        seconds[0] += 1
        return to_json(*args, **options)

    monkeypatch.setattr(sarif, "to_json", slow)
    monkeypatch.setattr(time, "perf_counter", lambda: seconds[0])
    return seconds


def results(path: pathlib.Path) -> int:
    """The number of findings in a log, beside the one that tells that the export did not end."""
    (run,) = json.loads(path.read_text(encoding="utf-8"))["runs"]
    rules = [result["ruleId"] for result in run["results"]]
    assert rules.count("OXP0002") == 1
    return len(rules) - 1


def test_findings_are_written_in_a_tenth_of_the_time(tmp_path: pathlib.Path, now: list[float]) -> None:
    path = tmp_path / "net.sarif"
    (tmp_path / ".onnxplain-0a.tmp").touch()
    export = context()
    export.watcher = journal = Journal(export, path, "full")
    assert list(tmp_path.iterdir()) == []

    export.report(TrainingMode(layers=("before the first stage",)))
    assert not path.exists()
    journal.began("capture")
    assert (results(path), now[0]) == (1, 6)
    assert "capture" in path.read_text(encoding="utf-8")

    # The text took a second, so that the next one may begin ten seconds later.
    now[0] = 15.9
    export.report(TrainingMode(layers=("too early",)))
    assert results(path) == 1
    now[0] = 16
    export.report(TrainingMode(layers=("in time",)))
    assert (results(path), now[0]) == (3, 17)

    # A stage without new findings needs no new text, and one with new findings does not wait.
    journal.began(STAGE)
    assert (results(path), now[0]) == (3, 17)
    assert STAGE in path.read_text(encoding="utf-8")
    export.report(TrainingMode(layers=("too early again",)))
    assert results(path) == 3
    journal.began("build")
    assert (results(path), now[0]) == (4, 18)


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.sarif"
    path.mkdir()
    Journal(context(), path, "github").began("capture")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("profile", "graphs"), [("full", True), ("github", False)])
def test_the_log_has_its_profile(tmp_path: pathlib.Path, profile: Any, graphs: bool) -> None:
    export = context()
    export.report(TrainingMode(layers=("a",)), at=Evidence(node=GRAPH))
    Journal(export, tmp_path / "net.sarif", profile).began("capture")
    assert ('"graphs"' in (tmp_path / "net.sarif").read_text(encoding="utf-8")) == graphs


FORKS = """\
import ctypes, os, pathlib, signal, sys, time
import torch, onnxplain

HOW, END = os.environ["HOW"], os.environ["END"]
PARENT, FILES, CHILD = os.getpid(), pathlib.Path("files"), pathlib.Path("child")


class Net(torch.nn.Module):
    def forward(self, x):
        fork()
        return x + 1 if HOW != "fails" or x.sum() > 0 else x


class Given(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        fork()
        return super().__torch_function__(function, types, args, kwargs or {})


def fork():
    if not CHILD.exists():
        CHILD.touch()
        pid = ctypes.CDLL(None).fork() if HOW == "libc" else os.fork()
        if pid == 0:
            act()
        else:
            CHILD.write_text(str(pid))


def act():
    # The parent has written its files, and is at its end.
    while not os.path.exists("go"):
        time.sleep(0.01)
    if END == "raises":
        raise ValueError("child")
    elif END == "exits":
        sys.exit(0)
    elif END == "interrupts":
        raise KeyboardInterrupt
    elif END == "signal":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)


def files():
    return {path.name: (path.stat().st_ino, path.read_bytes()) for path in FILES.rglob("*") if path.is_file()}


try:
    x = torch.ones(2).as_subclass(Given) if HOW == "input" else torch.ones(2)
    onnxplain.export(Net(), (x,), "files/net.onnx", sarif="files/net.sarif", report=True, artifacts_dir="files", profile=HOW != "libc",
                     control_flow="report", try_fixes=False)
except onnxplain.ExportFailed:
    assert os.getpid() == PARENT
except onnxplain.OnnxExporterError:
    os._exit(0 if os.getpid() != PARENT else 2)
except KeyboardInterrupt:
    os._exit(3)
assert os.getpid() == PARENT
before = files()
assert {"net.sarif", "net.md"} < {*before}
open("go", "x").close()
_, status = os.waitpid(int(CHILD.read_text()), 0)
assert files() == before
sys.exit(os.waitstatus_to_exitcode(status) % 256)
"""


@needs_pathlib
@pytest.mark.parametrize(
    ("how", "end", "code"),
    [
        ("os", "returns", 0),
        ("os", "raises", 0),
        ("os", "exits", 0),
        ("os", "interrupts", 3),
        ("os", "signal", 256 - signal.SIGTERM),
        ("libc", "returns", 0),
        ("libc", "signal", 256 - signal.SIGTERM),
        ("input", "returns", 0),
        ("fails", "returns", 0),
        ("fails", "raises", 0),
    ],
)
def test_what_the_model_forks_touches_no_file(folder: pathlib.Path, how: str, end: str, code: int) -> None:
    (folder / "files").mkdir()
    (folder / "script.py").write_text(FORKS, encoding="utf-8")
    with warm.started(folder, ("script.py",), {"HOW": how, "END": end}) as process:
        assert ended(process, folder)[0] == code, (folder / "out.txt").read_text(encoding="utf-8")
    (run,) = check_log(folder / "files" / "net.sarif")["runs"]
    assert [result["ruleId"] for result in run["results"]] == {"fails": ["OXP1001"], "input": []}.get(how, ["OXP1039"])
    assert (folder / "files" / "net.onnx").exists() == (how != "fails")


def test_a_target_that_forks_is_exported_once(folder: pathlib.Path) -> None:
    with (folder / "net.py").open("a", encoding="utf-8") as file:
        file.write("\n\nos.fork()\n")
    with command_line(folder, "") as process:
        assert ended(process, folder)[0] == 0
    # NOTE: the other process may end later.
    deadline = time.monotonic() + 60
    while "Error: " not in (folder / "out.txt").read_text(encoding="utf-8") and time.monotonic() < deadline:
        time.sleep(0.02)
    told = (folder / "out.txt").read_text(encoding="utf-8")
    assert (told.count("Error: "), told.count("Exported ")) == (1, 1)


POOL = """\
import multiprocessing
import torch, onnxplain


class Net(torch.nn.Module):
    def forward(self, x):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(abs, [1, 2])
        return x + 1


onnxplain.export(Net(), (torch.ones(2),))
"""


def test_workers_of_the_model_end_silently(folder: pathlib.Path) -> None:
    (folder / "script.py").write_text(POOL, encoding="utf-8")
    with start(folder, "") as process:
        assert ended(process, folder) == (0, "")
