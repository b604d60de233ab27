"""Runs the commands of the Makefile with every pair of Python and torch that exists: `pipx run nox --list`."""

from __future__ import annotations

import nox

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
TORCHES = ("2.11.0", "2.12.0", "2.13.0", "2.14.0", "2.15.0")
MISSING = {("3.10", "2.15.0")}
"""Pairs for which PyPI has no torch."""

nox.options.default_venv_backend = "venv"


@nox.session
@nox.parametrize("python,torch", [(python, torch) for python in PYTHONS for torch in TORCHES if (python, torch) not in MISSING])
def tests(session: nox.Session, torch: str) -> None:
    """The suite, or the part of it that follows `--`, against a version of torch."""
    _make(session, "test-torch", f"TORCH={torch}", f"TESTS={' '.join(session.posargs)}")


@nox.session
def lint(session: nox.Session) -> None:
    """Style, spelling, types, layers."""
    _make(session, "lint")


def _make(session: nox.Session, *arguments: str) -> None:
    session.run("make", *arguments, f"VENV={session.virtualenv.location}", external=True)
