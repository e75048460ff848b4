# One command for all: formats, lints, type-checks, checks the arrows between packages, tests.
PYTHON ?= .venv/bin/python
BIN := $(dir $(PYTHON))

.PHONY: check format lint types arrows test bench

check: format lint types arrows test

format:
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

lint:
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .

types:
	$(PYTHON) -m mypy

arrows:
	$(BIN)lint-imports

test:
	$(PYTHON) -m pytest -n auto --dist worksteal

bench:
	$(PYTHON) -m benchmarks
