"""Turns exceptions and observations into findings: data dependence, dims, arguments, operators, eager failures."""
