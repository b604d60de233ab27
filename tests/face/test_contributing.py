"""The examples of CONTRIBUTING.md work: they are applied to a copy of the sources as the page says, and each addition is used there."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from sarif_checks import check_log

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
VERSION = importlib.metadata.version("onnxplain")
PACKAGE = {"exporter": "", "diagnostics": "diagnostics", "rules": "rules", "schemas": "schemas"}
"""The root folders, and their folders in the package."""

EXAMPLE = re.compile(r"^(New file|At the end of|In) `([\w./]+)`:\n\n(`{3,})(python|diff)\n(.*?)^\3$", re.MULTILINE | re.DOTALL)
TESTED = re.compile(r"^Test it: `make (?:install|rules)`, then `.venv/bin/pytest (.+?)`", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Checkout:
    """A copy of the sources, and the package that is made of it."""

    root: pathlib.Path

    def apply_examples(self) -> None:
        """Does what the page says, block by block."""
        for how, name, _, language, block in EXAMPLE.findall(PAGE):
            path = self.root / name
            if how == "New file":
                assert not path.exists()
                path.write_text(block, encoding="utf-8")
                continue
            text = path.read_text(encoding="utf-8")
            if how == "At the end of":
                # NOTE: as the page says, a new rule has the version of pyproject.toml.
                added = re.sub(r'Added\("[\d.]+"\)', f'Added("{VERSION}")', block)
                path.write_text(f"{text}\n\n{added}", encoding="utf-8")
            else:
                assert language == "diff"
                before, after = ("".join(line[1:] for line in block.splitlines(True) if line[0] in kept) for kept in (" -", " +"))
                assert text.count(before) == 1, f"CONTRIBUTING.md changes lines that {name} does not have exactly once:\n{before}"
                path.write_text(text.replace(before, after), encoding="utf-8")

    def install(self) -> None:
        """Makes the package of the sources, as setuptools does."""
        package = self.root / "site" / "onnxplain"
        shutil.rmtree(package, ignore_errors=True)
        for folder, inside in PACKAGE.items():
            shutil.copytree(self.root / folder, package / inside, dirs_exist_ok=True)

    def run(self, *command: str) -> str:
        """Runs Python with the package, in the copy. Returns what it printed."""
        environment = {**os.environ, "PYTHONPATH": str(self.root / "site"), "COLUMNS": "120"}
        done = subprocess.run([sys.executable, *command], cwd=self.root, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy with all additions, whose rule book is fresh."""
    made = Checkout(tmp_path_factory.mktemp("contributing"))
    for folder in (*PACKAGE, "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "node_modules", "corpus", "benchmarks")
        shutil.copytree(ROOT / folder, made.root / folder, ignore=ignored)
    for file in ("pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / file, made.root)
    made.apply_examples()
    made.install()
    made.run("-m", "onnxplain.rules", "rules")
    return made


USER = """
import pathlib, sys

import torch

import onnxplain


class Model(torch.nn.Module):
    def forward(self, x):
        return x, torch.conv_tbc(-(-x), torch.ones(2, 3, 4), torch.ones(4))  # here


x = torch.rand(5, 2, 3) - 0.5
program = onnxplain.export(Model(), (x,), sarif="model.sarif", verify=True)
torch.testing.assert_close(program(x)[1], torch.conv_tbc(x, torch.ones(2, 3, 4), torch.ones(4)))
assert "Neg" not in [node.op_type for node in program.model.graph]
assert pathlib.Path(onnxplain.__file__).is_relative_to(sys.argv[1])
"""


@pytest.mark.slow
def test_an_export_uses_the_rule_the_translation_and_the_pass(checkout: Checkout) -> None:
    (checkout.root / "user.py").write_text(USER, encoding="utf-8")
    checkout.run("user.py", str(checkout.root / "site"))
    run = check_log(checkout.root / "model.sarif")["runs"][0]
    (line,) = (number for number, text in enumerate(USER.splitlines(), 1) if text.endswith("# here"))
    found = [(each["ruleId"], each["locations"][0]["physicalLocation"]["region"]["startLine"]) for each in run["results"]]
    assert found == [("OXP4900", line)]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["OXP4900"]
    told = checkout.run("-m", "onnxplain", "gate", "model.sarif", "--format", "tsv").splitlines()[0].split("\t")
    assert told[:3] == ["new", "note", "OXP4900"]
    assert told[3].startswith(f"user.py:{line}:")


def test_the_commands_know_the_rule_and_the_format(checkout: Checkout) -> None:
    assert "OXP4900" in [rule["id"] for rule in json.loads(checkout.run("-m", "onnxplain", "rules", "--json"))]
    assert "class Double" in checkout.run("-m", "onnxplain", "explain", "OutputIsInput")
    assert re.search(r"^ +tsv ", checkout.run("-m", "onnxplain", "gate", "--help"), re.MULTILINE)
    assert "OXP4900" in (checkout.root / "rules" / "CATALOG.md").read_text(encoding="utf-8")
    assert "OXP4900" in (checkout.root / "rules" / "RELEASES.md").read_text(encoding="utf-8").split("\n## ")[1]


@pytest.mark.slow
def test_the_commands_of_the_page_test_each_addition(checkout: Checkout) -> None:
    commands = [shlex.split(command) for command in TESTED.findall(PAGE)]
    assert len(commands) == 4
    # NOTE: one run for all, because each would import torch.
    paths, names = zip(*((paths, name) for *paths, option, name in commands if option == "-k"), strict=True)
    told = checkout.run("-m", "pytest", "-rA", *itertools.chain(*paths), "-k", " or ".join(f"({name})" for name in names))
    for test in (
        "test_failing_example_has_the_finding[OXP4900-OutputIsInput]",
        "test_clean_example_has_no_finding[OXP4900-OutputIsInput]",
        "test_catalog_is_fresh",
        "test_unshipped_rules_are_fresh",
        "test_every_rule_is_reported_somewhere",
        "test_equals_eager[linear: conv_tbc]",
        "test_a_case_uses_the_translation[aten::conv_tbc-False]",
        "test_two_negations_cancel_out",
        "test_the_command_offers_every_format[tsv]",
    ):
        assert re.search(rf"^PASSED .*::{re.escape(test)}$", told, re.MULTILINE), test


def test_the_additions_are_clean(checkout: Checkout) -> None:
    checkout.run("-m", "ruff", "check", "--no-cache", *PACKAGE, "tests")
    checkout.run("-m", "ruff", "format", "--no-cache", "--check", *PACKAGE, "tests")


def test_every_path_exists() -> None:
    page = EXAMPLE.sub("", PAGE)
    paths = re.findall(r"\]\((?!https?:|#)([^)#]+)", page) + re.findall(rf"\b(?:{'|'.join(PACKAGE)}|tests)/[\w./-]*\w/?", page)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_dataclass_is_where_the_page_says() -> None:
    flow = PAGE.partition("## How the data flows")[2].partition("\n## ")[0]
    drawn = re.findall(r"\|  (\w+) +([\w/]+\.py)", flow)
    rows = re.findall(r"^\| (`\w.*?) \| (`.*?) \|", flow, re.MULTILINE)
    listed = [pair for row in rows for pair in zip(*(re.findall(r"`(.+?)`", cell) for cell in row), strict=False)]
    assert len(drawn) > 4
    assert len(listed) > 4
    for name, path in (*drawn, *listed):
        assert f"\nclass {name}" in (ROOT / path).read_text(encoding="utf-8"), f"{path} has no {name}"
