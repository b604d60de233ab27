"""Exports that are killed at random moments over the files of an earlier export: each file stays whole, and no log claims a success.

`cd tests && ../.venv/bin/python -m adversary.test_kills SEED NUMBER` kills many and prints the figures.
"""

from __future__ import annotations

import collections
import hashlib
import json
import os
import pathlib
import random
import signal
import statistics
import sys
import tempfile
import time

import onnx
import pytest
import warm
from sarif_checks import check_log

from onnxplain.diagnostics import judge_logs, read_log
from onnxplain.rules import OutputReplaced

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

MODEL = """\
import os, torch, onnxplain


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(int(os.environ["SEED"]))
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8)))

    def forward(self, x):
        return self.layers(x)


print("begins", flush=True)
onnxplain.export(Net(), (torch.ones(2, 64),), "net.onnx", sarif="net.sarif", report=True, external_data=True, training=1)
"""
OUTPUTS = ("net.onnx", "net.onnx.data")
FILES = (*OUTPUTS, "net.md", "net.sarif")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def faults(folder: pathlib.Path, whole: set[tuple[str, bytes]]) -> list[str]:
    """What is wrong with the files after an export was killed. `whole` are outputs that complete exports wrote."""
    wrong = [name for name in OUTPUTS if (name, (folder / name).read_bytes()) not in whole]
    onnx.load(folder / "net.onnx")
    check_log(folder / "net.sarif")
    log = read_log(folder / "net.sarif")
    passed = _passes(folder)
    if log.succeeded:
        recorded = {artifact.path.name: artifact.sha256 for artifact in log.artifacts}
        if not passed or {*recorded} != {*OUTPUTS}:
            wrong.append("the log of a success")
    elif passed:
        wrong.append("the gate passes")
    return wrong


def _passes(folder: pathlib.Path) -> bool:
    """Whether the gate passes the log and finds its model at the path."""
    before = pathlib.Path.cwd()
    # NOTE: the gate hashes outputs below the current folder only.
    os.chdir(folder)
    try:
        return judge_logs([folder / "net.sarif"], max_warnings=0, replaced_output=lambda path: OutputReplaced(path=path)).passed
    except ValueError:
        return False
    finally:
        os.chdir(before)


def kill_exports(seed: int, number: int, folder: pathlib.Path) -> tuple[collections.Counter[str], list[float]]:
    """Kills `number` exports to one folder. Returns what was seen, and how many seconds each lived."""
    chance = random.Random(seed)
    (folder / "script.py").write_text(MODEL, encoding="utf-8")
    whole: set[tuple[str, bytes]] = set()
    seen: collections.Counter[str] = collections.Counter()
    seconds = []
    complete = []

    def wait() -> float:
        while "begins" not in (folder / "out.txt").read_text(encoding="utf-8") and process.is_alive():
            time.sleep(0.005)
        return time.monotonic()

    # NOTE: killed exports leave outputs of these three complete ones.
    for variant in range(3):
        (folder / "out.txt").write_text("")
        with warm.started(folder, ["script.py"], {"SEED": str(variant)}) as process:
            started = wait()
            process.join(120)
        assert process.exitcode == 0, (folder / "out.txt").read_text(encoding="utf-8")
        complete.append(time.monotonic() - started)
        whole |= {(name, (folder / name).read_bytes()) for name in OUTPUTS}
    for _ in range(number):
        (folder / "out.txt").write_text("")
        with warm.started(folder, ["script.py"], {"SEED": str(chance.randrange(3))}) as process:
            started = wait()
            # NOTE: not the longest time, which may have had a busy machine: every signal would come too late.
            process.join(chance.uniform(0, 1.1 * min(complete)))
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, chance.choice(SIGNALS))
            process.join(120)
        seconds.append(time.monotonic() - started)
        log = read_log(folder / "net.sarif")
        seen[f"exit {process.exitcode}"] += 1
        seen["log: cut short" if log.unfinished else "log: success"] += 1
        seen.update(f"fault: {fault}" for fault in faults(folder, whole))
        if any(folder.glob(".onnxplain-*")):
            seen["temporary files left"] += 1
    with warm.started(folder, ["script.py"], {"SEED": "0"}) as process:
        process.join(120)
    left = sorted({path.name for path in folder.iterdir()} - {*FILES, "script.py", "out.txt"})
    if left or process.exitcode:
        seen[f"fault: the last export leaves {left}, exit {process.exitcode}"] += 1
    return seen, seconds


def test_killed_exports_leave_whole_files(tmp_path: pathlib.Path) -> None:
    seen, _ = kill_exports(1, 8, tmp_path)
    assert not [told for told in seen if told.startswith("fault")], seen
    # NOTE: a run in which every export was complete before its signal would show nothing.
    assert seen["log: cut short"] > 0


def test_exports_to_the_same_paths_leave_whole_files_and_the_gate_tells_a_mixture(tmp_path: pathlib.Path) -> None:
    (tmp_path / "script.py").write_text(MODEL, encoding="utf-8")
    whole: set[tuple[str, bytes]] = set()
    for variant in ("0", "1"):
        with warm.started(tmp_path, ["script.py"], {"SEED": variant}) as process:
            process.join(120)
        assert process.exitcode == 0
        whole |= {(name, (tmp_path / name).read_bytes()) for name in FILES}
    for _ in range(4):
        with warm.started(tmp_path, ["script.py"], {"SEED": "0"}) as one, warm.started(tmp_path, ["script.py"], {"SEED": "1"}) as other:
            for process in (one, other):
                process.join(120)
                assert process.exitcode == 0
        files = {name: (tmp_path / name).read_bytes() for name in ("net.onnx", "net.onnx.data")}
        assert {*files.items()} <= whole
        log = read_log(tmp_path / "net.sarif")
        described = {artifact.path.name: artifact.sha256 for artifact in log.artifacts}
        belongs = described == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        assert log.succeeded
        assert _passes(tmp_path) is belongs


def main() -> None:
    """Prints the figures of many kills."""
    seed, number = map(int, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        seen, seconds = kill_exports(seed, number, pathlib.Path(folder))
    deciles = statistics.quantiles(seconds, n=10)
    told = f"{number} exports lived {deciles[4]:.2f} s (median), {deciles[8]:.2f} s (p90), {max(seconds):.2f} s (worst)"
    sys.stdout.write(f"{json.dumps(dict(sorted(seen.items())), indent=1)}\n{told}\n")


if __name__ == "__main__":
    main()
