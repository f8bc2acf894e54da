#!/bin/sh
# Install what the tests need into .venv-test and run everything: style, types, tests.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
[ -x .venv-test/bin/python ] || "$python" -m venv .venv-test
.venv-test/bin/pip install --quiet --disable-pip-version-check '.[test]'
.venv-test/bin/ruff check .
.venv-test/bin/ruff format --check .
.venv-test/bin/mypy
.venv-test/bin/python -m pytest -n 2 --dist loadfile "$@"
