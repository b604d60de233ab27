"""Exports many models, each in a process of its own, and tells which causes block the most of them."""

from .folder import expanded
from .jobs import Limits, Loaded, Model, Options, TriageError
from .libraries import LIBRARIES, names_in
from .local import cores, memory, run_here
from .naming import models
from .run import Triage, Triaged
from .summary import to_lines, to_markdown
from .targets import Target, targets
from .verdicts import Verdict

__all__ = [
    "LIBRARIES",
    "Limits",
    "Loaded",
    "Model",
    "Options",
    "Target",
    "Triage",
    "TriageError",
    "Triaged",
    "Verdict",
    "cores",
    "expanded",
    "memory",
    "models",
    "names_in",
    "run_here",
    "targets",
    "to_lines",
    "to_markdown",
]
