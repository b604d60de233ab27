"""Pages of the documentation site that live elsewhere in the repository: a hook of mkdocs, see mkdocs.yml."""

from __future__ import annotations

import os
import pathlib
import posixpath
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import onnxplain
from onnxplain.rules import book

ROOT = pathlib.Path(__file__).parents[1]

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "exporter/coming-from-torch-onnx.md": "coming-from-torch-onnx.md",
    "exporter/supported-operators.md": "supported-operators.md",
    "rules/CATALOG.md": "rules/index.md",
    "vscode-samples/README.md": "samples.md",
}
"""Files of the repository, and their pages of the site."""

_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages and pictures from elsewhere, and a page for each rule."""
    own = {f"docs/{file.src_uri}": file.src_uri for file in files if file.src_uri.endswith(".md")}
    pages = {**PAGES, **own}
    for source, uri in pages.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source == "rules/CATALOG.md":
            text = re.sub(r"\(#(oxp\d{4})-\w+\)", lambda link: f"({link[1].upper()}.md)", text.partition("\n## OXP")[0])
        if source == "exporter/supported-operators.md":
            text = re.sub(r"^# .*", "# What onnxplain can export", text)
        if uri in own.values():
            files.remove(files.src_uris[uri])
        files.append(File.generated(config, uri, content=_linked(text, source, uri, pages, config.repo_url or "")))
    for picture in sorted((ROOT / "vscode-samples" / "pictures").iterdir()):
        files.append(File.generated(config, f"pictures/{picture.name}", abs_src_path=str(picture)))
    files.append(File.generated(config, "api.md", content=_api()))
    for rule in book.rules():
        title = f"# {rule.id} {rule.__name__}\n\n`{rule.level.value}`\n\n> {rule.message}\n\n"
        files.append(File.generated(config, f"rules/{rule.id}.md", content=title + rule.page.markdown))
    return files


def _api() -> str:
    names = [*(f"onnxplain.{name}" for name in onnxplain.__all__), "onnxplain.testing.assert_exports"]
    return "# Python API\n\n" + "\n".join(f"::: {name}\n" for name in names)


def _linked(text: str, source: str, uri: str, pages: dict[str, str], repository: str) -> str:
    """The text with links that lead from its page of the site: to other pages, to pictures, or else to the file in the repository."""

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        fragment = found[2] or ""
        if target == "rules/CATALOG.md" and fragment:
            return f"]({_from(uri, f'rules/{fragment[1:8].upper()}.md')})"
        if target in pages:
            return f"]({_from(uri, pages[target])}{fragment})"
        if target.startswith("vscode-samples/pictures/"):
            return f"]({_from(uri, target.removeprefix('vscode-samples/'))})"
        return f"]({repository}/blob/main/{target}{fragment})" if (ROOT / target).exists() else found[0]

    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def _from(uri: str, target: str) -> str:
    return pathlib.PurePath(os.path.relpath(target, posixpath.dirname(uri) or ".")).as_posix()
