"""What a notebook shows: the finding with its cell instead of a traceback, and results of cells as HTML and markdown.

The tests run cells in IPython, and are skipped without it.
"""

from __future__ import annotations

import html.parser
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from logs import HOSTILE, hostile

import onnxplain

IPython = pytest.importorskip("IPython", reason="IPython is missing, so that no test runs cells: pip install ipython")

FAILING = """\
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x
"""

EXPORT = "onnxplain.export(Net(), (torch.ones(3, 3),), control_flow='report')"


@pytest.fixture
def shell(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An IPython that knows `onnxplain`, and leaves nothing behind."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    made = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    made.push({"onnxplain": onnxplain})
    yield made
    made.restore_sys_module_state()
    InteractiveShell.clear_instance()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_a_cell_that_fails_shows_the_finding_at_its_cell(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("x = 1", store_history=True)
    defined = shell.execution_count
    shell.run_cell(FAILING, store_history=True)
    done = shell.run_cell(EXPORT, store_history=True)
    assert isinstance(done.error_in_exec, onnxplain.ExportFailed)
    shown = plain(capsys.readouterr().out).splitlines()
    assert shown[0].startswith("error[OXP1001]")
    assert f"Cell In[{defined}]:4:12" in shown[1]
    assert "if x.sum() > 0:" in shown[2]
    assert not any("ipython" in line or "Traceback" in line for line in shown)
    report = done.error_in_exec._repr_markdown_()
    assert f"Cell In[{defined}]:4:12" in report
    assert f"Cell In[{defined}]" in done.error_in_exec.findings[0]._repr_markdown_()


def test_results_of_cells(shell: Any) -> None:
    program = onnxplain.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),), dynamic_shapes={"input": {0: "batch"}})
    data, _ = shell.display_formatter.format(program)
    assert "FLOAT[batch,3]" in data["text/html"]
    assert "FLOAT[batch,2]" in data["text/markdown"]
    assert "Exported Linear" in data["text/html"]
    assert "<details>" in data["text/html"]


class _Tags(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags = set[str]()
        self.attributes = set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_no_text_of_a_model_becomes_an_element(tmp_path: pathlib.Path) -> None:
    log = hostile(str(tmp_path / "flip.py"))
    shown = log._repr_html_() + log.findings[0]._repr_html_()
    seen = _Tags(shown)
    assert seen.tags <= {"div", "pre", "span", "br", "p", "strong", "details", "summary", "table", "tr", "td"}
    assert seen.attributes == {"style"}
    assert "\u202e" not in shown
    failed = onnxplain.ExportFailed(log)
    assert failed._repr_html_() == log._repr_html_()
    lines = failed._render_traceback_()
    assert not any("\u202e" in line or "\x1b[31m \\u202e" in line for line in lines)
    assert HOSTILE not in "".join(lines)
