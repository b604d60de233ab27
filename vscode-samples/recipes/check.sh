#!/usr/bin/env bash
# Exports models, hundreds if need be, and fails if one has an error that onnxplain-baseline.sarif does not accept:
#     bash check.sh               # models/*.py
#     bash check.sh MODEL.py ...
# Each file has a function build() that returns (model, args) or (model, args, kwargs, dynamic_shapes).
# To accept what there is: onnxplain baseline accept .sarif/*.sarif
set -euo pipefail

[ $# -gt 0 ] || set -- models/*.py
mkdir -p out
logs=()
for model in "$@"; do
    name=$(basename "$model" .py)
    logs+=(".sarif/$name.sarif")
    # With 1, findings failed the export: the gate decides about them. Anything else is a mistake.
    onnxplain export "$model:build" --output "out/$name.onnx" --sarif ".sarif/$name.sarif" --verify || [ $? -eq 1 ]
done
[ ! -f onnxplain-baseline.sarif ] || logs+=(--baseline onnxplain-baseline.sarif)
onnxplain gate "${logs[@]}"
