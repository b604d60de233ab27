"""Edits of the user's source, and the proof that they work."""
