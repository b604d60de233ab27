"""The user's own source code: locations, syntax trees, where an argument was written, calls that answer differently each time."""
