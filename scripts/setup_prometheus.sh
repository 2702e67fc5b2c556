#!/usr/bin/env bash
# The alerts' tests run promtool, and those of the metrics' pictures Prometheus itself. Installed where that is possible
# without asking; elsewhere those tests are skipped with this reason. Only the programs are used: no service is started.
set -euo pipefail
if command -v promtool >/dev/null && command -v prometheus >/dev/null; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  # Debian's package starts its services where a system runs; this file has it refrain.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
  fi
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus \
    >/dev/null && exit 0
fi
echo "No Prometheus here, so its tests will be skipped. To run them: apt-get install prometheus" >&2
