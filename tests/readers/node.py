"""Programs on Node.js, installed once from the lock file."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).parent
MODULES = HERE / "node_modules"

_UNREACHED = re.compile(r"^npm error code (ECONN\w+|EAI_AGAIN|ENOTFOUND|ENETUNREACH|\w*TIMEDOUT|ERR_SOCKET_TIMEOUT)$", re.MULTILINE)


class Missing(Exception):
    """A reader lacks a requirement. The text names it and tells how to get it."""


def install() -> None:
    """Installs the packages of package-lock.json, unless they are there.

    Raises:
        Missing: Node.js, npm or the network.
    """
    for program in ("node", "npm"):
        if not shutil.which(program):
            raise Missing(f"{program} is missing: install Node.js 20 or newer, with npm")
    # NOTE: npm writes its copy of the lock file last.
    lock, installed = HERE / "package-lock.json", MODULES / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
        if unreached := _UNREACHED.search(done.stderr):
            raise Missing(f"npm cannot reach its registry ({unreached[1]}) for the packages of {HERE.parent.name}/{HERE.name}/{lock.name}")
        assert done.returncode == 0, done.stderr
    # NOTE: this replaces the install scripts, none of which runs.
    for program in MODULES.glob("@microsoft/sarif-multitool-*/Sarif.Multitool"):
        program.chmod(0o755)
