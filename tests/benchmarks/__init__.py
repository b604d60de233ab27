"""The speed, memory and graphs of exports, beside bare capture and `torch.onnx.export`: `python -m benchmarks`."""
