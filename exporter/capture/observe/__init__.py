"""What is watched while a capture runs: frames, guards, reads, host values, attributes, replays."""
