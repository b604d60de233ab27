"""`python -m onnxplain` runs the command line."""

from .cli import main

main(prog_name="python -m onnxplain")
