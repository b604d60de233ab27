"""Edits of the user's source that make it exportable."""

from .schemas import returns_tensor

__all__ = ["returns_tensor"]
