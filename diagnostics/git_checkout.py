"""The git checkout around a folder."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import re
import subprocess
import urllib.parse

_SECONDS = 10
_SCP = re.compile(r"(?:[^@/]+@)?(?P<host>[^:/]+):(?P<path>[^/].*)")
"""How ssh names a repository: `git@host:owner/name.git`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Checkout:
    """A repository and the revision that is checked out.

    Attributes:
        repository: Absolute URI of the remote `origin`, without user and password.
        revision: The commit's hash.
        branch: The branch as `refs/heads/...`; empty on a detached head.
    """

    repository: str
    revision: str
    branch: str


def root(folder: pathlib.Path) -> pathlib.Path | None:
    """The root of the checkout around `folder`; None if there is no checkout."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def read(folder: pathlib.Path) -> Checkout | None:
    """The checkout whose root is `folder`; None without git, a checkout, a commit, or a remote on another machine."""
    # NOTE: each call of git takes some milliseconds, a good part of a small export.
    state = _state(folder / ".git")
    return _read(folder) if state is None else _read_in(folder, state)


def _state(git: pathlib.Path) -> tuple[int, ...] | None:
    """What changes with the commit, the branch and the remote; None if git keeps that elsewhere."""
    try:
        return tuple((git / name).stat().st_mtime_ns for name in ("HEAD", "logs/HEAD", "config"))
    except OSError:
        return None


@functools.lru_cache(maxsize=16)
def _read_in(folder: pathlib.Path, _state: tuple[int, ...]) -> Checkout | None:
    return _read(folder)


def _read(folder: pathlib.Path) -> Checkout | None:
    head = _git(folder, "rev-parse", "HEAD", "--symbolic-full-name", "HEAD").split()
    if len(head) != 2:
        return None
    revision, branch = head
    repository = _uri(_git(folder, "config", "--get", "remote.origin.url").strip())
    return Checkout(repository, revision, branch if branch.startswith("refs/heads/") else "") if repository else None


def _git(folder: pathlib.Path, *command: str) -> str:
    if not (folder / ".git").exists():
        return ""
    try:
        done = subprocess.run(["git", *command], cwd=folder, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout.decode("utf-8", "replace")


def _uri(remote: str) -> str | None:
    """`remote` as a URI that a browser opens, without user and password, which may be secret; None for a folder of this machine."""
    if "://" not in remote and (short := _SCP.fullmatch(remote)):
        remote = f"https://{short['host']}/{short['path']}"
    try:
        parts = urllib.parse.urlsplit(remote)
        port = f":{parts.port}" if parts.port and parts.scheme in ("http", "https") else ""
    except ValueError:
        return None
    if parts.scheme not in ("http", "https", "ssh", "git") or not parts.hostname:
        return None
    scheme = parts.scheme if parts.scheme == "http" else "https"
    path = urllib.parse.quote(urllib.parse.unquote(parts.path.rstrip("/").removesuffix(".git")))
    return f"{scheme}://{parts.hostname}{port}{path}"
