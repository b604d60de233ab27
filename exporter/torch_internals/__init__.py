"""Every private name of torch and every patch of torch or Python that onnxplain uses, one file for each subject."""
