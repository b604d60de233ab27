"""How fast, how small and how good exports are, side by side with bare capture and with `torch.onnx.export`: `python -m benchmarks`."""
