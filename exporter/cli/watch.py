"""`onnxplain export --watch`: exports again whenever a source that the models use changes."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import linecache
import pathlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn

import click

from onnxplain.diagnostics import shown_path, visible

_SETTLED = 50
"""An export begins once no file has changed for so many milliseconds: editors write a file in several steps."""
_NOT_LOADED = 2
"""The exit code of an export whose target could not be loaded."""
_LOOK = 1.0
"""How often the files are looked at where the system tells of no changes, as on some network drives, in seconds."""


def repeat(export: Callable[[set[str]], int], targets: Sequence[pathlib.Path]) -> NoReturn:
    """Calls `export` at once, and again after each change. Only an exception ends it, such as that of Ctrl-C.

    An export imports all modules of the user's files anew.

    Args:
        export: Exports the targets and prints the findings. Adds the files of imported modules to its argument. Returns the exit code.
        targets: The files of the targets.

    Raises:
        click.ClickException: The package watchfiles is missing.
    """
    if importlib.util.find_spec("watchfiles") is None:
        raise click.ClickException("--watch needs the package watchfiles: pip install watchfiles")
    # NOTE: Python takes a file that changes twice within a second, to the same length, for its compiled form.
    sys.dont_write_bytecode = True
    before, files = {*sys.modules}, {*targets, *_settings(targets)}
    while True:
        began, known, imported = time.time_ns(), _states(files), set[str]()
        code = export(imported)
        files |= _users_files(before, imported)
        if code == _NOT_LOADED:
            # NOTE: a module with an error is not among those that were imported.
            files |= {each for target in targets for each in target.parent.glob("*.py")}
        gc.collect()
        click.echo(f"\nThat took {(time.time_ns() - began) / 1e9:.2f} s. Waiting for changes of your sources; Ctrl-C ends it.")
        changed = _wait(files, known, began)
        click.echo(f"\n== changed: {', '.join(visible(shown_path(str(file))) for file in sorted(changed))}")
        linecache.checkcache()
        importlib.invalidate_caches()


def _settings(targets: Iterable[pathlib.Path]) -> Iterator[pathlib.Path]:
    """The files that may hold settings for the targets."""
    folders = {folder for target in targets for folder in target.parents}
    return (file for folder in folders if (file := folder / "pyproject.toml").is_file())


def _users_files(before: set[str], imported: set[str]) -> set[pathlib.Path]:
    """The user's files among those of imported modules. Forgets those of their modules that were imported since `before`."""
    from onnxplain.source import locations

    left = {name: file for name in {*sys.modules} - before if isinstance(file := getattr(sys.modules[name], "__file__", None), str)}
    for name, file in left.items():
        if locations.is_users(file):
            del sys.modules[name]
    return {pathlib.Path(file).absolute() for file in {*imported, *left.values()} if locations.is_users(file)}


_State = tuple[int, int, int] | None
"""Time of the last change, length and number of a file; None if there is none."""


def _states(files: Iterable[pathlib.Path]) -> dict[pathlib.Path, _State]:
    return {file: _state(file) for file in files}


def _state(file: pathlib.Path) -> _State:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _wait(files: set[pathlib.Path], known: dict[pathlib.Path, _State], began: int) -> set[pathlib.Path]:
    """Waits until some of `files` differ from what the export that began at `began` saw, and returns them."""
    folders = sorted({file.parent for file in files if file.parent.is_dir()})
    # NOTE: a module was imported during the export, so its state then is not known. Its time tells whether it has changed since.
    seen = {**_states(files), **known}
    late = {file for file, state in seen.items() if file not in known and state is not None and state[0] >= began}
    with _told(folders) as told:
        while True:
            if changed := late | {file for file in files if _state(file) != seen[file]}:
                return changed
            told.wait(_LOOK)
            told.clear()


@contextlib.contextmanager
def _told(folders: Sequence[pathlib.Path]) -> Iterator[threading.Event]:
    """An event that is set when something in one of the folders changes."""
    import watchfiles

    told, stop = threading.Event(), threading.Event()

    def listen() -> None:
        with contextlib.suppress(OSError):
            for _ in watchfiles.watch(*folders, watch_filter=None, step=_SETTLED, stop_event=stop, recursive=False):
                told.set()

    # NOTE: in the main thread, watchfiles would turn SIGTERM into an interruption by Ctrl-C.
    thread = threading.Thread(target=listen, name="onnxplain --watch", daemon=True)
    thread.start()
    try:
        yield told
    finally:
        stop.set()
        thread.join()
