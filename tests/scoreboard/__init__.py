"""How well failures are explained: every case of a corpus, ours beside torch.onnx.export.

Run `python -m scoreboard` from the folder of the tests.
"""
