"""The model as files: serialization, external data, checkpoints. Files appear whole or not at all."""

from .model_file import write
from .paths import checked_folder, checked_path, not_written
from .saving import save as save_program
from .serializer import check, open_destination, save, serialize
from .staging import Staging, sha256
from .state_dicts import apply

__all__ = [
    "Staging",
    "apply",
    "check",
    "checked_folder",
    "checked_path",
    "not_written",
    "open_destination",
    "save",
    "save_program",
    "serialize",
    "sha256",
    "write",
]
