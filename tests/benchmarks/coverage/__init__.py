"""Exports every operator of PyTorch's operator database, op_db, and compares the results with those of eager PyTorch."""
