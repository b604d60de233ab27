"""SARIF files of onnxplain: the conventions that their writer and their readers share, and how to open one."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pathlib
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import UnreadableLog
from .json_values import array, string

Json = Mapping[str, Any]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
"""The `$schema` of our files."""

SIZE_LIMIT = 64 * 10**6
"""The largest SARIF file that onnxplain reads, in bytes. Its own logs have at most 5,000 results, of about 5 kB each."""

_VALUE_LIMIT = 5 * 10**6
"""The most commas, brackets and braces in such a file. Python needs up to 40 bytes for each byte of lists within lists. Logs of onnxplain
have one such character for 20 bytes.
"""

PATH_LIMIT = 4096
"""The most characters of a path in a log. Linux takes no longer ones, and to look for a path costs the square of its length."""

SAME = "The same finding."
"""The message of a related location where the same finding occurs again. All other related locations explain the finding."""

UNLINKED = "]\u2060("
"""Replaces `](` in messages, with a word joiner: readers would render a link and know no escape."""


@contextlib.contextmanager
def opened_sarif(path: pathlib.Path) -> Iterator[Json]:
    """The content of the SARIF file at `path`.

    Raises:
        UnreadableLog: The file is missing, too large or not a SARIF log of onnxplain, or the block met content that it did not expect.
    """
    with content_errors(path):
        with path.open("rb") as file:
            # NOTE: it may be a pipe or a device, which does not tell its size.
            data = file.read(SIZE_LIMIT + 1)
        if len(data) > SIZE_LIMIT:
            raise ValueError(f"it has more than {SIZE_LIMIT // 10**6} MB")
        if sum(map(data.count, (b",", b"[", b"{"))) > _VALUE_LIMIT:
            raise ValueError(f"it has more than {_VALUE_LIMIT // 10**6} million values")
        with _without_collection():
            yield _parsed(data)


@contextlib.contextmanager
def content_errors(path: pathlib.Path) -> Iterator[None]:
    """Turns an error in the block, which reads content of the SARIF file at `path`, into `UnreadableLog`."""
    try:
        yield
    except OSError as error:
        raise UnreadableLog(path, error.strerror or str(error)) from error
    except RecursionError as error:
        raise UnreadableLog(path, "it is nested too deeply") from error
    except KeyError as error:
        raise UnreadableLog(path, f"it lacks {error}") from error
    except ValueError as error:
        raise UnreadableLog(path, str(error)) from error
    except (TypeError, AttributeError, IndexError, OverflowError) as error:
        raise UnreadableLog(path, f"onnxplain does not write such logs ({error})") from error


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Keeps Python from looking for garbage: JSON is none, and a look at millions of lists takes longer than to read them."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _parsed(data: bytes) -> Json:
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"it is not JSON, or is truncated ({error})") from error
    if not isinstance(document, dict) or "runs" not in document or "version" not in document:
        raise ValueError("it is not SARIF")
    if document["version"] != "2.1.0":
        raise ValueError(f"it is SARIF {document['version']}; this onnxplain reads SARIF 2.1.0")
    names = {string(run["tool"]["driver"]["name"]) for run in array(document["runs"])}
    if others := sorted(names - {"onnxplain"}):
        raise ValueError(f"it was written by {', '.join(others)}")
    return document


def present_results(run: Json) -> list[Any]:
    """The results of `run`, without those that an earlier `onnxplain gate` added because they were fixed."""
    return [result for result in array(run["results"]) if result.get("baselineState") != "absent"]


def file_of(location: Json, bases: Json) -> str:
    """The file of an artifact location: a path, or Python's name for source outside all files, such as `<stdin>`.

    A base without a URI, which SARIF allows (2.1.0, section 3.14.14), stands for the current folder.
    """
    if len(string(location["uri"])) > PATH_LIMIT:
        raise ValueError(f"{location['uri'][:60]!r}... is longer than any path")
    base = string(bases[location["uriBaseId"]].get("uri", "")) if "uriBaseId" in location else ""
    uri = urllib.parse.urlsplit(urllib.parse.urljoin(base, string(location["uri"])))
    path = urllib.request.url2pathname(uri.path) if uri.scheme == "file" else urllib.parse.unquote(location["uri"])
    if not _is_possible(path) or (uri.scheme != "file" and (uri.scheme or base)):
        raise ValueError(f"{location['uri']!r} is not a file")
    return path


def _is_possible(path: str) -> bool:
    """Whether a file can have this path: none has a null character or half of a pair of surrogates in its name."""
    # NOTE: Python raises a ValueError wherever such a path is used.
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False
