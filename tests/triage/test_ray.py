"""Triages on a Ray cluster on this machine.

They need ray, which is no test tool of this project: it takes 240 MB on the disk, three daemons for each node, and over two minutes of two
cores for one test, in which its own time limits end others.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time

import pytest
from fleets import triage, verdicts

ray = pytest.importorskip("ray", reason="ray is not installed, so NO test of `--engine ray` runs: pip install ray")

pytestmark = pytest.mark.slow

SLOW = """\
import os
import time

import torch


class Slow(torch.nn.Module):
    def __init__(self, letter):
        super().__init__()
        self.letter = letter

    def forward(self, x):
        time.sleep(1)
        if self.letter == "c":
            os._exit(3)
        return -x if self.letter == "d" and x.sum() > 0 else x


"""
SLOW += "".join(f"def build_{letter}():\n    return Slow({letter!r}), (torch.ones(3),)\n\n\n" for letter in "abcdefgh")
OPTIONS = ("slow.py", "--control-flow", "report", "--no-try-fixes")


def test_nothing_is_lost_or_there_twice_if_a_node_dies(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text(SLOW, encoding="utf-8")
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        command = [sys.executable, "-m", "onnxplain", "triage", *OPTIONS, "--engine", "ray", "--address", cluster.address, "-o", "far"]
        with subprocess.Popen(command, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            end = time.monotonic() + 120
            while not ((tmp_path / "far" / "triage.sqlite").exists() and len(verdicts(tmp_path / "far")) >= 2):
                assert time.monotonic() < end
                assert process.poll() is None, process.stdout and process.stdout.read()
                time.sleep(0.1)
            cluster.remove_node(nodes[0], allow_graceful=False)
            output, _ = process.communicate(timeout=200)
            assert process.returncode == 1, output
    finally:
        cluster.shutdown()
    assert triage(*OPTIONS, "-o", "here").exit_code == 1
    assert sorted(verdicts(tmp_path / "far")) == sorted(verdicts(tmp_path / "here"))
    assert dict(verdicts(tmp_path / "far"))["slow:build_c"] == "crashed"
