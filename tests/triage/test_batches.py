"""The engine of Ray clusters, on a stand-in for ray that needs no cluster: batches, lost nodes, and what ends a triage."""

from __future__ import annotations

import pathlib
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from fleets import MODELS, triage, verdicts

from onnxplain.triage import Cluster, Limits, Model, Options, TriageError, Workers, run_on_ray
from onnxplain.triage.jobs import Ended, Files, Job

LIMITS = Limits(10.0, None)


class _RayError(Exception):
    pass


class _RayTaskError(_RayError):
    cause = ImportError("no onnxplain")


class Ray(types.ModuleType):
    """Stands in for ray.

    Args:
        run: What a node does with a batch: yields what comes back, or raises. The function of the engine by default.
        resources: What the cluster has.
        connected: Whether the program has connected already.
    """

    def __init__(self, run: Callable[..., Iterator[Any]] | None = None, resources: dict[str, float] | None = None, connected: bool = False):
        super().__init__("ray")
        self.exceptions = types.SimpleNamespace(RayError=_RayError, RayTaskError=_RayTaskError)
        self.batches: list[list[str]] = []
        self.calls: list[str] = []
        self.needs: dict[str, Any] = {}
        self.options: dict[str, Any] = {}
        self.workers: list[Workers] = []
        self._run, self._resources, self._connected = run, resources or {"CPU": 2}, connected

    def is_initialized(self) -> bool:
        return self._connected

    def init(self, address: str | None, **options: Any) -> None:
        self.calls.append("init")
        self.options = options
        if address == "nowhere":
            raise ConnectionError

    def shutdown(self) -> None:
        self.calls.append("shutdown")

    def cluster_resources(self) -> dict[str, float]:
        return self._resources

    def remote(self, **needs: Any) -> Callable[[Any], Any]:
        self.needs = needs

        def submitting(function: Any) -> Any:
            def submit(models: Sequence[Model], limits: Limits, workers: Workers) -> Any:
                self.batches.append([model.name for model in models])
                self.workers.append(workers)
                return (self._run or function)(models, limits, workers)

            return types.SimpleNamespace(remote=submit)

        return submitting

    def wait(self, streams: Sequence[Any], num_returns: int) -> tuple[Sequence[Any], Sequence[Any]]:
        return streams[:num_returns], streams[num_returns:]

    def get(self, finished: Any) -> Any:
        return finished


def finished(name: str) -> Any:
    return types.SimpleNamespace(ended=Ended(name, "exit", 0, 1.0, 2), files={"log": name.encode()})


def healthy(models: Sequence[Model], *_: Any) -> Iterator[Any]:
    yield from (finished(model.name) for model in models)


@pytest.fixture
def run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Ended]]:
    def run(ray: Ray | None, count: int, **cluster: Any) -> list[Ended]:
        monkeypatch.setitem(sys.modules, "ray", ray)
        models = [Model(f"net{number}", f"net{number}", "", "nets.py", "build", {}, False, Options()) for number in range(count)]
        files = [[tmp_path / f"{model.file}.{end}" for end in ("sarif", "txt", "json", "repro.py")] for model in models]
        jobs = [Job(model, Files(*paths)) for model, paths in zip(models, files, strict=True)]
        return list(run_on_ray(jobs, LIMITS, Workers(8, lambda *_: None, ""), Cluster(**cluster), []))

    return run


Run = Callable[..., list[Ended]]


def test_the_ends_and_the_files_of_all_models_come_back(run: Run, tmp_path: pathlib.Path) -> None:
    ray = Ray(healthy)
    assert [ended.name for ended in run(ray, 9, cpus=1, gpus=0, memory=None)] == [f"net{number}" for number in range(9)]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {f"net{number}.sarif": f"net{number}" for number in range(9)}
    assert ray.calls == ["init", "shutdown"]
    assert ray.options["log_to_driver"] is False
    assert {workers.number for workers in ray.workers} == {1}
    assert ray.needs == {"num_cpus": 1, "num_gpus": 0, "memory": None, "max_retries": 0, "num_returns": "streaming"}


@pytest.mark.parametrize(
    ("count", "slots", "sizes"),
    [
        (1, 2, [1]),
        (4, 2, [2, 2]),
        (9, 2, [4, 4, 1]),
        (40, 2, [5] * 8),
        (100, 1, [16] * 6 + [4]),
    ],
)
def test_all_slots_get_batches_that_are_neither_small_nor_large(count: int, slots: int, sizes: list[int], run: Run) -> None:
    ray = Ray(healthy, {"CPU": slots})
    assert len(run(ray, count)) == count
    assert [len(batch) for batch in ray.batches] == sizes


@pytest.mark.parametrize(
    ("has", "needs", "sizes"),
    [
        ({"CPU": 4}, {"cpus": 2}, [4, 4]),
        ({"CPU": 8, "memory": 100}, {"memory": 50}, [4, 4]),
        ({"CPU": 8, "GPU": 1}, {"gpus": 0.5}, [4, 4]),
        ({"CPU": 1}, {"cpus": 0.25}, [2, 2, 2, 2]),
        ({"CPU": 8}, {}, [1] * 8),
    ],
)
def test_the_scarcest_resource_makes_the_slots(has: dict[str, float], needs: dict[str, float], sizes: list[int], run: Run) -> None:
    ray = Ray(healthy, has)
    run(ray, 8, **needs)
    assert [len(batch) for batch in ray.batches] == sizes


@pytest.mark.parametrize("needs", [{"cpus": 3}, {"gpus": 1}, {"memory": 1}])
def test_a_cluster_that_is_too_small_for_one_model_is_refused(needs: dict[str, float], run: Run) -> None:
    ray = Ray(healthy)
    with pytest.raises(TriageError):
        run(ray, 1, **needs)
    assert (ray.batches, ray.calls) == ([], ["init", "shutdown"])


@pytest.mark.parametrize("retries", [0, 2])
def test_the_model_that_takes_its_node_down_ends_and_the_others_go_on(retries: int, run: Run) -> None:
    def crashing(models: Sequence[Model], *_: Any) -> Iterator[Any]:
        for model in models:
            if model.name == "net1":
                raise _RayError
            yield finished(model.name)

    ray = Ray(crashing, {"CPU": 1})
    found = run(ray, 4, retries=retries)
    assert [ended.name for ended in found] == ["net0", "net1", "net2", "net3"]
    assert found[1] == Ended("net1", "the end of its parent process", 0, 0.0, 0)
    assert ray.batches == [["net0", "net1", "net2", "net3"], *[["net1", "net2", "net3"]] * retries, ["net2", "net3"]]


def test_a_model_that_comes_back_twice_counts_once(run: Run) -> None:
    ray = Ray(lambda models, *_: (finished(model.name) for model in models for _ in range(2)))
    assert [ended.name for ended in run(ray, 1)] == ["net0"]


def test_a_node_without_onnxplain_ends_the_triage(run: Run) -> None:
    def unable(*_: Any) -> Iterator[Any]:
        raise _RayTaskError
        yield

    ray = Ray(unable)
    with pytest.raises(TriageError):
        run(ray, 3)
    assert ray.calls == ["init", "shutdown"]


def test_a_connection_that_the_program_has_stays(run: Run) -> None:
    ray = Ray(healthy, connected=True)
    assert len(run(ray, 1)) == 1
    assert ray.calls == []


def test_no_ray_and_no_cluster_are_wrong_usage(run: Run) -> None:
    for ray in (None, Ray(healthy)):
        with pytest.raises(TriageError):
            run(ray, 1, address="nowhere")


@pytest.mark.skipif(sys.platform == "win32", reason="triages fork processes")
def test_the_command_runs_a_batch_on_ray(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.py").write_text(MODELS, encoding="utf-8")
    ray = Ray(resources={"CPU": 1})
    monkeypatch.setitem(sys.modules, "ray", ray)
    result = triage("models.py:build_exit", "models.py:build_healthy", "--no-try-fixes", "--engine", "ray")
    assert result.exit_code == 1, result.output
    assert ray.batches == [["models:build_exit", "models:build_healthy"]]
    assert dict(verdicts(tmp_path / "triage")) == {"models:build_exit": "crashed", "models:build_healthy": "exported"}
