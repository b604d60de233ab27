"""What a triage makes of logs: findings with one cause."""

from __future__ import annotations

import dataclasses

from logs import context

from onnxplain.diagnostics import Location, Log, Region, gather
from onnxplain.rules import DataDependentBranch


def log_of(subject: str, *places: Location) -> Log:
    made = context()
    for place in places:
        made.report(DataDependentBranch(condition="x > 0"), at=place)
    return dataclasses.replace(made.log(), subject=subject)


def test_findings_of_one_line_have_one_cause() -> None:
    first, second = (Location("/models/net.py", Region(line), "forward") for line in (3, 8))
    module = Location("/models/net.py", None, "forward", "blocks.0")
    fleet = gather([log_of("a", first, second, module), log_of("b", first), log_of("c", second, module), log_of("d", second)])
    found = {cluster.cause[1]: len(cluster.touched) for cluster in fleet.clusters}
    assert sorted(found.values()) == [2, 2, 3]
    assert (found["net.py:3"], found["net.py:8"]) == (2, 3)
