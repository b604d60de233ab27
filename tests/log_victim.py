"""A user's folder with a source and its log, for tests of what logs from somebody else can do."""

from __future__ import annotations

import copy
import hashlib
import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

import onnxplain
from onnxplain.cli import main

SOURCE = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x - 1
"""
SECRET = "token = 'hunter2'\n"
Change = Callable[[dict[str, Any]], None]


class Victim:
    """A user's folder with a source and its log, beside a file that is none of the log's business."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.root, self.outside = folder / "checkout", folder / "outside"
        for each in (self.root, self.root / "sub", self.outside):
            each.mkdir()
        self.source, self.secret = self.root / "net.py", self.outside / "secret.py"
        self.source.write_text(SOURCE, encoding="utf-8")
        self.secret.write_text(SECRET, encoding="utf-8")
        self.log = self.root / "net.sarif"
        scope: dict[str, Any] = {}
        exec(compile(SOURCE, str(self.source), "exec"), scope)
        with pytest.raises(onnxplain.ExportFailed):
            onnxplain.export(scope["Net"](), (torch.ones(3),), sarif=self.log)
        self.document = json.loads(self.log.read_text(encoding="utf-8"))
        self.run_of(self.document)["originalUriBaseIds"]["SRCROOT"] = {"uri": self.root.as_uri() + "/"}
        self.change_of(self.document)["artifactLocation"] = {"uri": "net.py", "uriBaseId": "SRCROOT"}

    @staticmethod
    def run_of(document: dict[str, Any]) -> dict[str, Any]:
        run: dict[str, Any] = document["runs"][0]
        return run

    def change_of(self, document: dict[str, Any]) -> dict[str, Any]:
        change: dict[str, Any] = self.run_of(document)["results"][0]["fixes"][0]["artifactChanges"][0]
        return change

    def save(self, change: Change = lambda _: None) -> None:
        document = copy.deepcopy(self.document)
        change(document)
        self.log.write_text(json.dumps(document), encoding="utf-8")

    def files(self) -> dict[str, str]:
        """Every file with its content, and every link with its target."""
        paths = (path for path in self.root.parent.rglob("*") if path.is_file() and not path.is_fifo() and path != self.log)
        return {str(path): str(path.readlink()) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}

    def fix(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["fix", str(self.log), "--root", str(self.root), *arguments])
