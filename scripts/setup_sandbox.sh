#!/usr/bin/env bash
# Code that models wrote is run by bubblewrap alone. Installed where that is possible without asking; elsewhere the tests
# that run code are skipped with this reason.
set -euo pipefail
if command -v bwrap >/dev/null; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq bubblewrap >/dev/null && exit 0
fi
echo "No bubblewrap here, so the tests that run code will be skipped. To run them: apt-get install bubblewrap" >&2
