"""`export(profile=True)`: where the time of an export goes, by stage and by line."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch

import onnxplain
from onnxplain.diagnostics import Log

SLOW = """
    import time

    import torch

    def scale():
        time.sleep(0.1)  # sleeps
        return 2

    class Inner(torch.nn.Module):
        def forward(self, x):
            for i in range(20):
                x = x + i  # unrolled
            return x * scale()  # scales

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([Inner(), Inner(), Inner()])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)  # calls
            return x

    class Failing(Net):
        def forward(self, x):
            if super().forward(x).sum() > 0:  # fails
                return torch.from_numpy(x.numpy())
            return x
"""


class Row(NamedTuple):
    own: float
    time: float
    operators: int | None
    text: str


def profile_of(log: Log) -> str:
    (text,) = (each.text for each in log.attachments if each.name == "profile.txt")
    return text


def rows(text: str, number: int) -> list[Row]:
    """The rows of the lines with this number."""
    pattern = r" *([\d.]+) +\d+% +([\d.]+) +(?:(\d+)  )?(\S*model\.py:NUMBER: .*)"
    found = (re.fullmatch(pattern.replace("NUMBER", str(number)), line) for line in text.splitlines())
    return [Row(float(each[1]), float(each[2]), int(each[3]) if each[3] else None, each[4]) for each in found if each]


def stages(text: str) -> dict[str, list[float]]:
    """The seconds of each stage, and of its parts that have some."""
    table = text.partition("\n\n")[0].splitlines()[1:]
    return {line.split()[0]: [float(each) for each in line.split()[1:] if not each.endswith("%")] for line in table}


def test_lines_have_their_time_with_and_without_what_they_call(
    load: Callable[[str], ModuleType], marked: Callable[[str], list[int]], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    text = profile_of(onnxplain.export(load(SLOW).Net(), (torch.ones(2),), profile=True).diagnostics)
    (sleeps,), (scales,), (calls,) = (rows(text, marked(name)[0]) for name in ("sleeps", "scales", "calls"))
    assert sleeps.own == pytest.approx(0.3, abs=0.1)
    assert sleeps.operators == 0
    assert "in layers" not in sleeps.text
    assert scales.own < 0.15 < 0.25 < scales.time
    assert scales.operators == 3
    assert scales.text.endswith("in layers.0 and 2 more")
    assert calls.time >= scales.time
    assert calls.own < calls.time
    (unrolled,) = rows(text, marked("unrolled")[0])
    assert unrolled.operators == 60
    assert re.search(r"%  +torch, outside of these lines", text)
    assert re.search(r"%  +onnxplain, outside of these lines", text)
    # NOTE: no row is about the insides of torch or of onnxplain.
    assert not re.search(r"torch/|onnxplain/|_call_impl", text)
    own = [float(line.split()[0]) for line in text.split("line\n")[1].splitlines() if re.match(r" *\d+\.\d+", line)]
    assert sum(own) == pytest.approx(stages(text)["all"][0], rel=0.2, abs=0.05)


def test_stages_are_split_by_owner(load: Callable[[str], ModuleType]) -> None:
    log = onnxplain.export(load(SLOW).Net(), (torch.ones(2),), profile=True).diagnostics
    found = stages(profile_of(log))
    for stage in log.stages:
        assert stage.seconds < 0.001 or found[stage.name][0] == pytest.approx(stage.seconds, abs=0.001)
    whole, lines, *_ = found["capture"]
    assert 0.25 < lines <= whole
    assert sum(found["capture"][1:]) == pytest.approx(whole, abs=0.003)


def test_a_failed_export_has_a_profile(load: Callable[[str], ModuleType], marked: Callable[[str], list[int]]) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(load(SLOW).Failing(), (torch.ones(2),), profile=True, control_flow="report", try_fixes=False)
    text = profile_of(failed.value.log)
    (sleeps,) = rows(text, marked("sleeps")[0])
    assert sleeps.own > 0.25
    assert sleeps.operators is None
    assert "operators" not in text
    (fails,) = rows(text, marked("fails")[0])
    assert fails.time > sleeps.own * 0.9


def test_lines_that_torchdynamo_interprets_count(load: Callable[[str], ModuleType], marked: Callable[[str], list[int]]) -> None:
    program = onnxplain.export(
        load(SLOW.replace("time.sleep(0.1)", "torch.ones(2)")).Net(), (torch.ones(2),), strategies=["strict"], profile=True
    )
    (unrolled,) = rows(profile_of(program.diagnostics), marked("unrolled")[0])
    assert unrolled.operators == 60
    assert unrolled.own > 0


def test_lines_of_packages_that_define_modules_count() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=100, attn_implementation="eager"
    )
    program = onnxplain.export(transformers.BertModel(config).eval(), (torch.ones(1, 8, dtype=torch.long),), profile=True)
    text = profile_of(program.diagnostics)
    assert re.search(r"modeling_bert\.py:\d+: .*  in encoder\.layer\.0", text)
    assert "site-packages" not in text


def test_the_process_is_as_before() -> None:
    interval, threads = sys.getswitchinterval(), set(threading.enumerate())
    onnxplain.export(lambda x: x.cos(), (torch.ones(2),), profile=True)
    assert sys.getswitchinterval() == interval
    assert set(threading.enumerate()) == threads
