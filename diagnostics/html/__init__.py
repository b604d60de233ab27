"""Logs as one page for browsers: a file that needs neither a network nor other files."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
import json
import pathlib
from collections.abc import Iterable, Mapping

import jinja2

from onnxplain.diagnostics.atomic_files import replace_file
from onnxplain.diagnostics.display import visible
from onnxplain.diagnostics.fleet import gather
from onnxplain.diagnostics.log import Log

from .content import page_of

_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}
"""What could end the data's element, or begin a comment in it. Within JSON these characters occur in strings only."""


def to_html(logs: Iterable[Log], against: Iterable[Log] | None = None, sizes: Mapping[str, int] | None = None) -> str:
    """The page on `logs`, such as those of `read_logs`. It holds only ASCII characters.

    Args:
        logs: The logs of one or many exports, each of a model with another name.
        against: The logs of an earlier run, to tell what changed.
        sizes: The places of the models, by name, in an order from the smallest to the largest, to tell the smallest with each cause.
    """
    page = page_of(gather(logs, against, sizes))
    data = json.dumps(page, default=vars, separators=(",", ":")).translate(_ESCAPES)
    style, script = _asset("page.css"), _asset("page.js")
    # NOTE: the policy allows this style and this script alone, should text of a log ever become an element. A picture runs no script.
    policy = (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    )
    text = _template().render(title=visible(page.verdict), policy=policy, style=style, script=script, data=data)
    return text.encode("ascii", "xmlcharrefreplace").decode()


def write(logs: Iterable[Log], path: pathlib.Path, against: Iterable[Log] | None = None) -> None:
    """Writes the page on `logs` to `path`, whole or not at all. Makes the folders above it.

    Raises:
        OSError: The file cannot be written; an earlier page is unharmed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, to_html(logs, against).encode())


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@functools.cache
def _asset(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="ascii")


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=True)
    return environment.from_string(_asset("page.html.j2"))
