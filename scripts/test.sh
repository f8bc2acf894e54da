#!/bin/sh
# Install what the tests need into .venv-test and run everything: style, types, tests. Arguments go to pytest.
# With --fast as the first argument: the sources are tested without installing them again, slow tests (a browser, other
# packages, clusters) are left out, and property tests try few examples.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
install=yes
if [ "${1:-}" = --fast ]; then
    shift
    set -- -m "not slow" --hypothesis-profile fast "$@"
    export PYTHONPATH="$PWD/src:$PWD/benchmarks/paper/baselines" # absolute: tests start processes in other folders
    [ ! -x .venv-test/bin/ruff ] || install=no
fi
if [ "$install" = yes ]; then
    [ -x .venv-test/bin/python ] || "$python" -m venv .venv-test
    .venv-test/bin/pip install --quiet --disable-pip-version-check '.[test]' ./benchmarks/paper/baselines
fi
.venv-test/bin/ruff check .
.venv-test/bin/ruff format --check .
.venv-test/bin/mypy
.venv-test/bin/python -m pytest -n 2 --dist loadfile "$@"
