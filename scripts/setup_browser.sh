#!/usr/bin/env bash
# The browser tests need Chromium and its driver. Installed where that is possible without asking; elsewhere the
# tests are skipped with this reason.
set -euo pipefail
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null && exit 0
fi
echo "No Chromium here, so the browser tests will be skipped. To run them: apt-get install chromium chromium-driver" >&2
