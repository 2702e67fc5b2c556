#!/usr/bin/env bash
# The passwords, keys and URLs of compose.yaml, drawn once into compose.secrets. Files that are there are kept: to change a
# password, remove the folder and the volumes. Needs openssl.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 077
mkdir -p compose.secrets
cd compose.secrets
# The folder is its owner's alone, and that keeps other users out; the files are mounted one by one into containers, whose
# users are not known on this host, and which could not read them otherwise.
write() {
  if [ -e "$1" ]; then cat >/dev/null; else cat >"$1.new" && chmod "$2" "$1.new" && mv "$1.new" "$1"; fi
}
for name in valkey postgresql mlflow; do openssl rand -hex 24 | tr -d '\n' | write "$name-password" 444; done
openssl genpkey -algorithm ed25519 | write signing-key.pem 444
printf 'postgresql+psycopg://proctor:%s@postgresql:5432/mlflow' "$(cat postgresql-password)" | write mlflow-store-uri 444
write services.env 400 <<ENV
PROCTOR_BROKER_URL=redis://:$(cat valkey-password)@valkey:6379/0
PROCTOR_LEDGER_URL=redis://:$(cat valkey-password)@valkey:6379/1
PROCTOR_RECORDS_URL=postgresql://proctor:$(cat postgresql-password)@postgresql:5432/proctor
PROCTOR_REGISTRY_URI=http://proctor:$(cat mlflow-password)@mlflow:5000
ENV
write gateway.env 400 <<ENV
PROCTOR_GATEWAY_TOKEN=$(openssl rand -hex 32)
ENV
echo "The gateway's token is in compose.secrets/gateway.env"
