#!/bin/sh
# Run the tests on every Python from 3.11 on that this machine has, and with the oldest allowed version of each
# dependency on the oldest of them:
#     scripts/compatibility.sh [options of pytest]
#     ONLY="oldest 3.13" scripts/compatibility.sh tests/test_score.py
# Needs uv. Environments are made in .venv-compatibility; what could not be run is said at the end. Pythons are found on
# the PATH, among pyenv's and uv's own; newer ones come with: uv python install 3.14
set -eu
cd "$(dirname "$0")/.."
home=$PWD/.venv-compatibility
mkdir -p "$home"
first=3.11
missing="" failed="" passed=""

python_of() { # the interpreter of a version, or nothing
    for place in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        [ -x "$place" ] && echo "$place" && return
    done
    uv python find --no-python-downloads "$1" 2>/dev/null || true
}

run() { # name, interpreter, how versions are chosen; then options of pytest
    name=$1 python=$2 resolution=$3
    shift 3
    case " ${ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
    if [ -z "$python" ]; then
        missing="$missing $name"
        return 0
    fi
    [ -x "$home/$name/bin/python" ] || uv venv -q --python "$python" "$home/$name"
    if ! uv pip install -q --python "$home/$name/bin/python" --resolution "$resolution" --reinstall-package qubayes \
        --reinstall-package qubayes-baselines '.[test]' ./benchmarks/paper/baselines
    then
        missing="$missing $name(no-packages)"
        return 0
    fi
    echo "== $name: $("$home/$name/bin/python" --version)"
    # Not editable, so that kernels which several versions of numba compile do not meet in one folder.
    if PATH="$home/$name/bin:$PATH" "$home/$name/bin/python" -m pytest -p no:cacheprovider "$@"; then
        passed="$passed $name"
    else
        failed="$failed $name"
    fi
}

run oldest "$(python_of $first)" lowest-direct "$@"
for version in 3.11 3.12 3.13 3.14; do
    run "$version" "$(python_of $version)" highest "$@"
done
echo "passed:${passed:- none}; failed:${failed:- none}; not available here:${missing:- none}"
[ -z "$failed" ]
