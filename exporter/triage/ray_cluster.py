"""The engine on a Ray cluster: its nodes run the workers of the engine on one machine, and send the logs back."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import math
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .jobs import Ended, Files, Job, Limits, Model, TriageError
from .local import Workers, run_here

_BATCHES = 4
"""Batches for each slot of the cluster: with fewer, slots idle at the end; with more, torch is imported more often."""
_LEAST_BATCH, _BATCH_LIMIT = 4, 16
"""Models in a batch, where there are as many."""


@dataclasses.dataclass(frozen=True)
class Cluster:
    """A Ray cluster, and what each of its slots needs.

    Attributes:
        address: Its address, as in `ray.init`; None for the one in RAY_ADDRESS, or else a new one on this machine.
        cpus: Cores for each model, more than 0.
        memory: Bytes of memory for each model; None reserves none.
        gpus: GPUs for each model.
        retries: How often a model runs again whose node was lost.
    """

    address: str | None = None
    cpus: float = 1
    memory: int | None = None
    gpus: float = 0
    retries: int = 3


@dataclasses.dataclass(frozen=True)
class _Finished:
    """What comes back for a model: how it ended, and its files by their names in `Files`."""

    ended: Ended
    files: Mapping[str, bytes]


def run_on_ray(jobs: Sequence[Job], limits: Limits, workers: Workers, cluster: Cluster, left_out: Sequence[str]) -> Iterator[Ended]:
    """Runs each job on the cluster, and yields how it ended, in the order of their ends.

    The nodes need onnxplain. They get the current folder, without the files that `left_out` names, and targets lie below it.

    Raises:
        TriageError: ray is not installed, there is no such cluster, it never has the resources, or a node lacks onnxplain.
    """
    ray = _ray()
    waiting = {job.model.name: job for job in jobs}
    lost = dict.fromkeys(waiting, 0)
    with _connected(ray, cluster, left_out):
        task = ray.remote(num_cpus=cluster.cpus, num_gpus=cluster.gpus, memory=cluster.memory, max_retries=0, num_returns="streaming")(
            _batch
        )

        def submit(models: Sequence[Model]) -> None:
            running[task.remote(models, limits, dataclasses.replace(workers, number=1))] = [model.name for model in models]

        running: dict[Any, list[str]] = {}
        for batch in _batches([job.model for job in jobs], _slots(ray, cluster)):
            submit(batch)
        while running:
            (stream,), _ = ray.wait([*running], num_returns=1)
            finished = _next(ray, stream)
            if finished is not None:
                if job := waiting.pop(finished.ended.name, None):
                    _keep(job.files, finished.files)
                    yield finished.ended
                continue
            # NOTE: the batch is done, or its node is lost. Then the first of the rest was running, and may be the reason.
            left = [name for name in running.pop(stream) if name in waiting]
            for name in left[:1]:
                lost[name] += 1
                if lost[name] > cluster.retries:
                    del waiting[name]
                    yield Ended(name, "the end of its parent process")
            if left := [name for name in left if name in waiting]:
                submit([waiting[name].model for name in left])


def _batch(models: Sequence[Model], limits: Limits, workers: Workers) -> Iterator[_Finished]:
    """Runs models on a node, one after the other."""
    with tempfile.TemporaryDirectory(prefix="onnxplain-triage-") as folder:
        files = {
            model.name: Files(*(pathlib.Path(folder, f"{model.file}.{end}") for end in ("sarif", "txt", "json", "repro.py")))
            for model in models
        }
        for ended in run_here([Job(model, files[model.name]) for model in models], limits, workers):
            written = {field.name: getattr(files[ended.name], field.name) for field in dataclasses.fields(Files)}
            yield _Finished(ended, {name: path.read_bytes() for name, path in written.items() if path.is_file()})


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise TriageError("--engine ray needs ray, which is not installed: pip install 'onnxplain[ray]'") from error


@contextlib.contextmanager
def _connected(ray: Any, cluster: Cluster, left_out: Sequence[str]) -> Iterator[None]:
    """A connection to the cluster, unless the program has one already."""
    if ray.is_initialized():
        yield
        return
    environment = {"working_dir": ".", "excludes": [".git", ".venv", *left_out]}
    try:
        ray.init(address=cluster.address, runtime_env=environment, log_to_driver=False, include_dashboard=None, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise TriageError(f"--address: expected the address of a Ray cluster, got {cluster.address!r}: {error}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _slots(ray: Any, cluster: Cluster) -> int:
    """How many models the cluster runs at a time.

    Raises:
        TriageError: It is too small for one.
    """
    has = ray.cluster_resources()
    needs = {"CPU": cluster.cpus, "GPU": cluster.gpus, "memory": cluster.memory or 0}
    for resource, need in needs.items():
        if need > has.get(resource, 0):
            raise TriageError(f"--{resource.lower()}: expected at most the {has.get(resource, 0):g} of the cluster, got {need:g}.")
    return int(min(has[resource] / need for resource, need in needs.items() if need))


def _batches(models: Sequence[Model], slots: int) -> Iterator[Sequence[Model]]:
    share = math.ceil(len(models) / slots)
    size = min(share, max(_LEAST_BATCH, min(_BATCH_LIMIT, math.ceil(share / _BATCHES))))
    return (models[start : start + size] for start in range(0, len(models), size))


def _next(ray: Any, stream: Any) -> _Finished | None:
    """The next model of a batch; None after the last, or if the node of the batch is lost."""
    try:
        finished: _Finished = ray.get(next(stream))
    except StopIteration:
        return None
    except ray.exceptions.RayTaskError as error:
        raise TriageError(f"No model can be exported on the cluster: {error.cause}") from error
    except ray.exceptions.RayError:
        return None
    return finished


def _keep(files: Files, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        path: pathlib.Path = getattr(files, name)
        path.write_bytes(content)
