"""Exports many models, each in its own process, and tells which causes block the most of them."""

from .clusters import size
from .folder import expanded
from .jobs import LIBRARIES, Limits, Loaded, Model, Options, TriageError
from .libraries import load as load_of_library
from .libraries import names_in, names_without_import
from .local import Workers, cores, memory, run_here
from .naming import models
from .ray_cluster import Cluster, run_on_ray
from .run import Engine, Triage, Triaged
from .summary import to_lines, to_markdown
from .targets import Target, targets
from .verdicts import Verdict

__all__ = [
    "LIBRARIES",
    "Cluster",
    "Engine",
    "Limits",
    "Loaded",
    "Model",
    "Options",
    "Target",
    "Triage",
    "TriageError",
    "Triaged",
    "Verdict",
    "Workers",
    "cores",
    "expanded",
    "load_of_library",
    "memory",
    "models",
    "names_in",
    "names_without_import",
    "run_here",
    "run_on_ray",
    "size",
    "targets",
    "to_lines",
    "to_markdown",
]
