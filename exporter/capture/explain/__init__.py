"""An exception or an observation becomes findings: data dependence, dims, arguments, operators, eager failures."""
