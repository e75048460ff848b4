# One command for all: formats, lints, type-checks, checks the arrows between packages, tests.
PYTHON ?= .venv/bin/python
BIN := $(dir $(PYTHON))

.PHONY: check format lint types arrows test bench site docs-at-length docker-lint

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

# The documentation as a site, in site/.
site:
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet

docker-lint:
	$(BIN)hadolint docker/Dockerfile
	$(BIN)yamllint --strict --config-file docker/.yamllint docker mkdocs.yml
	$(BIN)check-jsonschema --builtin-schema vendor.compose-spec docker/compose.yaml

# Pages whose commands take minutes, too.
docs-at-length:
	MMBU_DOCS_AT_LENGTH=1 $(PYTHON) -m pytest tests/docs

bench:
	$(PYTHON) -m benchmarks
