"""`python -m onnxplain` is the command line, too."""

from .cli import main

main(prog_name="python -m onnxplain")
