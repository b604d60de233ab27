"""Special functions of real tensors, by the algorithms of PyTorch's kernels (ATen/native/Math.h). All are computed in DOUBLE."""
