"""The README and the pages of docs/: their code runs, their links lead somewhere, and the site has a page for each rule."""

from __future__ import annotations

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import gate_logs
import onnx_ir as ir
import pytest
import torch
from click.testing import CliRunner
from marks import IS_3_11

import onnxplain
from onnxplain.cli import main
from onnxplain.diagnostics.sarif.descriptors import descriptor
from onnxplain.rules import book

ROOT = pathlib.Path(__file__).parents[2]

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKING = [
    *PAGES,
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "exporter" / "coming-from-torch-onnx.md",
    ROOT / "rules" / "CATALOG.md",
]

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

TARGETS = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x, mask=None):
        return x


def build():
    return torch.nn.ReLU(), (torch.ones(3),)
"""


def blocks(language: str) -> list[tuple[str, str]]:
    """The code blocks of the pages in a language, with the names of their pages."""
    return [(page.name, code) for page in PAGES for kind, code in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def test_all_blocks_are_of_a_kind_that_is_tested() -> None:
    # Settings are tested in tests/cli/test_settings.py.
    kinds = {
        kind for page in PAGES for kind in re.findall(r"^```(\w*)\n.*?^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    }
    assert kinds == {"python", "sh", "text", "toml"}


def tiny_llama() -> None:
    """A folder `llama` as those on the hub, with random weights."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1
    )
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained("llama", max_shard_size="1KB")


@pytest.mark.parametrize(("page", "code"), blocks("python"), ids=lambda each: each if each.endswith(".md") else "")
def test_python(page: str, code: str, load: Callable[..., ModuleType], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "llama" in code:
        tiny_llama()
    module = load(code)
    for name, value in vars(module).items():
        if name.startswith("test_"):
            value()
    if isinstance(program := getattr(module, "program", None), onnxplain.ONNXProgram):
        assert not [each for each in program.diagnostics.findings if each.level is not onnxplain.Level.NOTE]
    for name in re.findall(r'"([\w/]+\.onnx)"', code):
        assert ir.load(name).graph.inputs


@pytest.fixture
def workplace(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The files that the commands of the pages name. An export costs nothing here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for file in ("model.py", "models/a.py", "models/b.py", "models/legacy/net.py"):
        pathlib.Path(file).parent.mkdir(parents=True, exist_ok=True)
        name = "ReLU" if file == "models/a.py" else "Tanh"
        pathlib.Path(file).write_text(TARGETS.replace("torch.nn.ReLU()", f"torch.nn.{name}()"), encoding="utf-8")
    pathlib.Path(".sarif").mkdir()
    gate_logs.write(["a  # W"], ".sarif/Model.sarif", model="Model")
    gate_logs.run("baseline", "accept", ".sarif/Model.sarif")
    shutil.copytree(".sarif", "old-logs")
    program = onnxplain.export(torch.nn.ReLU(), (torch.ones(3),), "model.onnx", dynamic_shapes={"input": {0: "batch"}})

    def export(*args: Any, **kwargs: Any) -> onnxplain.ONNXProgram:
        return program

    monkeypatch.setitem(vars(onnxplain), "export", export)
    return tmp_path


def commands() -> list[list[str]]:
    """The words of each line in the pages' shell blocks, without comments."""
    return [words for _, code in blocks("sh") for line in code.splitlines() if (words := shlex.split(line, comments=True))]


def test_commands(workplace: pathlib.Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for words in commands():
        if words[:2] == ["onnxplain", "triage"]:
            # NOTE: it exports in other processes, with libraries that may be missing here; it has tests of its own.
            assert CliRunner().invoke(main, [*words[1:], "--help"]).exit_code == 0, words
        elif words[0] == "onnxplain":
            args = [each for word in words[1:] for each in (map(str, sorted(pathlib.Path().glob(word))) if "*" in word else [word])]
            result = CliRunner().invoke(main, args)
            assert result.exit_code == 0, (words, result.output)
        elif words[0] == "make":
            assert words[1] in targets, words
        else:
            assert words[0] in ("pip", "git"), words


def test_the_finding_of_the_readme_is_that_of_the_sample() -> None:
    (shown,) = [code for page, code in blocks("text") if page == "README.md"]
    head, place, *code = shown.splitlines()
    log = json.loads((ROOT / "vscode-samples" / ".sarif" / "frozen_batch.sarif").read_text(encoding="utf-8"))
    (result,) = (each for each in log["runs"][0]["results"] if each["level"] == "error")
    assert head == f"error[{result['ruleId']}]: {result['message']['text']}"
    file, line = re.findall(r"--> (\S+?):(\d+):", place)[0]
    source = (ROOT / file).read_text(encoding="utf-8").splitlines()
    assert code[0] == f" {line} | {source[int(line) - 1]}"


def fragments(page: pathlib.Path) -> set[str]:
    """What links to the headings of a page end with, on GitHub and on the site."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.name)
def test_links(page: pathlib.Path) -> None:
    for target, fragment in re.findall(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)", BLOCK.sub("", page.read_text(encoding="utf-8"))):
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not fragment or fragment in fragments(file), f"{target}#{fragment}"


def test_the_help_of_every_rule_is_in_the_catalogue() -> None:
    log = onnxplain.export(torch.nn.ReLU(), (torch.ones(3),)).diagnostics
    known = fragments(book.CATALOG)
    for rule in book.rules():
        address, _, fragment = descriptor(rule, log.tool, {}).help_uri.partition("#")
        assert address.endswith("/blob/main/rules/CATALOG.md")
        assert fragment in known


@pytest.mark.slow
@pytest.mark.skipif(not IS_3_11, reason="the pinned Markdown extensions do not go with the last mkdocstrings for Python 3.10")
def test_the_site(tmp_path: pathlib.Path) -> None:
    """Every link is checked by the generator, and every rule has its page."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {rule.id for rule in book.rules()} <= {page.stem for page in (tmp_path / "rules").glob("*.html")}
    assert "onnxplain.export" in (tmp_path / "api.html").read_text(encoding="utf-8")
    found = json.loads((tmp_path / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    assert any("OXP1009" in each["title"] for each in found)
