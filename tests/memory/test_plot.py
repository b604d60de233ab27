"""The memory estimate as a picture."""

from __future__ import annotations

import pathlib
import re

import pytest

from onnxplain.memory import MemoryEstimate, Origin, Step, draw

MIB = 2**20


@pytest.mark.parametrize(("peak", "last"), [(10 * MIB, "14"), (40 * MIB, "60"), (0, "0.0014")])
def test_the_axes_show_all_nodes_and_leave_room_for_the_text_above_the_peak(peak: int, last: str, tmp_path: pathlib.Path) -> None:
    steps = tuple(Step(peak, Origin("Exp")) for _ in range(3))
    draw(MemoryEstimate(peak, 0, (), steps, {}, 0, 0, ()), tmp_path / "plot.svg", "net")
    picture = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    # NOTE: matplotlib draws letters as shapes, with the text of each label in a comment. The numbers of the first axis come first.
    texts = re.findall(r"<!-- (.*?) -->", picture)
    assert len([text for text in texts if re.search("[a-z]", text)]) == 4, "both axes, the peak and the model have names"
    numbers = [text for text in texts if re.fullmatch(r"[\d.]+", text)]
    assert (numbers[6], numbers[-1]) == ("3.5", last)
