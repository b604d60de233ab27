"""How well exporters explain failures: every case of a corpus, onnxplain beside torch.onnx.export.

Run `python -m scoreboard` from the folder of the tests.
"""
