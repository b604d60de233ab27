# Two commands do everything on a fresh machine: `make demo` and `make test`. Both use the environment in .venv, and make it first.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# nox brings environments that it made.
MAKE_VENV = test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
# A stale build folder would put deleted files into the wheel.
INSTALL = rm -rf build && $(BIN)/pip install --quiet --no-deps --force-reinstall .

# Three processes, since tests wait for the commands that they start; each with whole files, the long ones not last. What they share is made
# once, and one process at a time runs npm.
PROCESSES = --numprocesses 3 --dist loadfile --no-loadscope-reorder
# With two threads for each process, torch's threads wait for each other: the suite takes a quarter longer on two cores.
test test-torch: export OMP_NUM_THREADS = 1

.PHONY: demo samples install lint lint-installed test test-torch rules kernels operators docs release clean

# Exports a healthy sample and one with a problem, and shows the finding. The second export must fail with exit code 1.
demo: $(VENV)/needs-of-demo
	$(INSTALL)
	mkdir -p out
	$(BIN)/onnxplain export vscode-samples/healthy.py:build -o out/healthy.onnx --sarif .sarif/healthy.sarif --report --verify
	$(BIN)/onnxplain export vscode-samples/frozen_batch.py:build -o out/frozen_batch.onnx --sarif .sarif/frozen_batch.sarif --report; \
		test $$? -eq 1
	@echo "That was the demo: one sample exported, the other failed with a finding at its line, as it should."

# Exports all samples, and writes their logs and the pictures of the terminal anew.
samples: $(VENV)/needs-of-demo
	$(INSTALL)
	$(BIN)/python vscode-samples/regenerate.py

# Installs the present sources, which tests, mypy and lint-imports see only then.
install: $(VENV)/needs-of-test
	$(INSTALL)

# Style, spelling, types, layers.
lint: install
	$(MAKE) lint-installed

lint-installed:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports

# Lint, and beside it the suite against the installed wheel: the linters have one process each, and the machine more.
test: install
	$(MAKE) lint-installed > lint.txt 2>&1 & lint=$$!; \
		$(BIN)/pytest $(PROCESSES) $(TESTS); tests=$$?; \
		wait $$lint; linted=$$?; cat lint.txt; rm lint.txt; \
		exit $$((tests + linted))

# The suite against another torch, in a separate environment: make test-torch TORCH=2.11.0. With TESTS=tests/passes only a part of it.
test-torch: VENV = .venv-torch-$(TORCH)
test-torch:
	test -n "$(TORCH)"
	$(MAKE_VENV)
	grep -v '^torch==' constraints.txt > $(VENV)/constraints.txt
	$(BIN)/pip install --quiet --constraint $(VENV)/constraints.txt "torch==$(TORCH)" ".[test]"
	$(BIN)/pytest $(PROCESSES) $(TESTS)

# Regenerates rules/CATALOG.md and the unshipped table of rules/RELEASES.md.
rules: $(VENV)/needs-of-test
	$(INSTALL)
	$(BIN)/python -m onnxplain.rules rules

# Writes the table of the dtypes for which the installed ONNX Runtime has no kernels: exporter/recording/kernels.py.
kernels: $(VENV)/needs-of-test
	cd tests && ../$(BIN)/python -m benchmarks.coverage.kernels
	$(BIN)/ruff format --quiet exporter/recording/kernels.py

# Writes the tables of operators: exporter/supported-operators.md by dtype, docs/opsets.md by opset. They take half an hour each; a run of the
# first that was stopped goes on.
operators: install
	$(BIN)/pip install --quiet --constraint constraints.txt ".[bench]"
	mkdir -p out
	cd tests && ../$(BIN)/python -m benchmarks.coverage --results ../out/coverage.jsonl --table ../exporter/supported-operators.md
	rm out/coverage.jsonl
	cd tests && ../$(BIN)/python -m benchmarks.coverage.opsets --table ../docs/opsets.md

# Builds the documentation site in out/site. Every link is checked.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site begins at out/site/index.html."

# Freezes the unshipped table of rules/RELEASES.md: make release VERSION=0.2.0. Checks the version of pyproject.toml, CHANGELOG.md, the pages,
# the rules' histories, and that everything is committed. Afterwards commit, and raise the version in pyproject.toml and CHANGELOG.md.
release: rules
	$(BIN)/python -m onnxplain.rules --release $(VERSION) rules

$(VENV)/needs-of-demo: pyproject.toml constraints.txt
	$(MAKE_VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt .
	touch $@

$(VENV)/needs-of-test: pyproject.toml constraints.txt
	$(MAKE_VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt ".[test]"
	touch $@ $(VENV)/needs-of-demo

clean:
	rm -rf .venv* .nox out build *.egg-info tests/readers/node_modules
