# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by findings: `install PACKAGE...` makes a temporary environment, which `python` then names; its folder, the
# current one, is removed at the end. `expect TEXT` fails unless standard input is TEXT.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

install() {
  python3 -m venv environment
  environment/bin/python -m pip install --quiet --disable-pip-version-check "$@"
  PATH=$folder/environment/bin:$PATH
}

expect() {
  local seen
  seen=$(cat)
  printf '%s\n' "$seen"
  [ "$seen" = "$1" ] || { printf 'changed; it was:\n%s\n' "$1" >&2; exit 1; }
}
