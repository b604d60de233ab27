"""Translations for complex tensors, by subject.

A complex tensor is a real ONNX tensor with one more dim at the end, of size 2: the real and the imaginary part. What PyTorch calls the
last dim is the last but one here. All operands are complex, except for numbers: the pass `promote` has cast them.
"""
