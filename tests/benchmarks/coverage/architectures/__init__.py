"""Exports every architecture, static and with dynamic sizes, and compares the results with those of eager PyTorch."""
