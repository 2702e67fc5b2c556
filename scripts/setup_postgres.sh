#!/usr/bin/env bash
# The record store's tests run on PostgreSQL, too. Installed where that is possible without asking; elsewhere those
# tests are skipped with this reason. Only its programs are used: each run makes a cluster of its own.
set -euo pipefail
if command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null && exit 0
fi
echo "No PostgreSQL here, so its tests will be skipped. To run them: apt-get install postgresql" >&2
