#!/usr/bin/env bash
# Makes the virtual environment named by the argument, with align and all that its tests need.
# Reads PYTHON (the interpreter) and PIP_OPTIONS (words for pip install).
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$1
python=${PYTHON:-python3}
read -ra pip_options <<<"${PIP_OPTIONS:-}"

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "Cannot use '$python': align needs Python 3.10 or newer. Name another with 'make PYTHON=python3.11 ...'." >&2
    exit 2
fi

# A torch that is already there was chosen for this machine's devices: use it, do not install a second one.
# `find_spec` looks without importing: an installed torch_npu without CANN makes `import torch` fail.
has_torch() {
    "$1" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)'
}

extras=torch,test
venv_options=()
if has_torch "$python"; then
    extras=test
    venv_options=(--system-site-packages)
fi

# Debian's python3 has no ensurepip before python3-venv is installed.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv </dev/null
    else
        echo "Cannot make '$venv': '$python' has no venv module. Install it (Debian: apt-get install python3-venv)." >&2
        exit 2
    fi
fi

if ! [ -x "$venv/bin/python" ]; then
    "$python" -m venv "${venv_options[@]}" "$venv"
fi
# A virtual environment does not see the packages of another one that it was made from.
if has_torch "$python" && ! has_torch "$venv/bin/python"; then
    where='import sysconfig; print(sysconfig.get_path("purelib"))'
    "$python" -c "$where" >"$("$venv/bin/python" -c "$where")/_made_from.pth"
fi
echo "Installing align and its test tools into $venv (the first time takes some minutes)."
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    -c constraints.txt "${pip_options[@]}" -e ".[$extras]"
