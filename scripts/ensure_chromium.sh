#!/usr/bin/env bash
# Makes sure that a Chromium is there for the tests that open the report; installs Debian's where that is possible.
# Without one those tests are skipped, but with CI=true a missing Chromium is a failure.
set -euo pipefail

find_chromium() {
    command -v chromium || command -v chromium-browser || command -v google-chrome
}

if find_chromium >/dev/null; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing chromium for the tests that open the report."
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } </dev/null || true
fi
if find_chromium >/dev/null; then
    exit 0
fi
echo "No Chromium here: the tests that open the report in a browser are skipped. Install 'chromium' to run them." >&2
if [ "${CI:-}" = true ]; then
    echo "CI=true: a missing Chromium is a failure." >&2
    exit 1
fi
