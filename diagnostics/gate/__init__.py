"""The gate: compares logs with a baseline of accepted findings, and decides whether a build passes."""

from .baseline import Acceptance, accept_findings
from .formats import GATE_FORMATS, Format
from .verdict import Verdict, judge_logs

__all__ = ["GATE_FORMATS", "Acceptance", "Format", "Verdict", "accept_findings", "judge_logs"]
