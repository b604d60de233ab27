"""A user's folder with a source and its log, for tests of what logs from somebody else can do."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import os
import pathlib
import tempfile
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


_ROOT = "{ROOT}"


@functools.cache
def _log() -> str:
    """The log of the source, with `_ROOT` for its folder."""
    with tempfile.TemporaryDirectory() as folder:
        source, log = pathlib.Path(folder, "net.py"), pathlib.Path(folder, "net.sarif")
        source.write_text(SOURCE, encoding="utf-8")
        scope: dict[str, Any] = {}
        exec(compile(SOURCE, str(source), "exec"), scope)
        with pytest.raises(onnxplain.ExportFailed):
            onnxplain.export(scope["Net"](), (torch.ones(3),), sarif=log, control_flow="report")
        return log.read_text(encoding="utf-8").replace(folder, _ROOT)


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
        self.log.write_text(_log().replace(_ROOT, str(self.root)), encoding="utf-8")
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
        """Every file but the log with its content, every link with its target, and every folder."""
        found: dict[str, str] = {}
        folders = [str(self.root.parent)]
        # NOTE: mutated logs come by the ten thousand, and `pathlib` takes several times as long to list these few files.
        while folders:
            for entry in os.scandir(folders.pop()):
                if entry.is_symlink():
                    found[entry.path] = str(pathlib.Path(entry.path).readlink())
                elif entry.is_dir():
                    found[entry.path] = "a folder"
                    folders.append(entry.path)
                elif entry.is_file() and entry.path != str(self.log):
                    content = pathlib.Path(entry.path).read_bytes()
                    found[entry.path] = hashlib.sha256(content).hexdigest()
        return found

    def fix(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["fix", str(self.log), "--root", str(self.root), *arguments])
