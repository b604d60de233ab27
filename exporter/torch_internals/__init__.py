"""Every private name of torch and every patch of torch, onnxscript or Python that onnxplain uses, one file for each subject."""
