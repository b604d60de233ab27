"""Observes a capture while it runs: frames, guards, reads of tensors, random numbers, attributes; and replays operators afterwards."""
