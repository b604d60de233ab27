"""Mutation sampling: small faults in a room's code, and whether the room's tests catch them. See README.md.

NOTE: why no library (tried in versions mutmut 3.8, cosmic-ray 8.7, mutatest 3.1):
- mutmut gives each function a trampoline, whose names it takes from the file's path. Our root folders have other names once installed
  (`exporter/` is `onnxplain`), and trampolines are frames and source lines that an exporter reads.
- cosmic-ray edits files in place, one mutant at a time. It replaces each operator by each other one, in annotations as well: of its 1,078
  mutants of the room `request`, 242 are the `|` of an annotation, which nothing can notice.
- mutatest mutates the cached bytecode of one source folder, and has had no release since Python 3.8.
"""
