# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions that the scripts in tools/ share. Source this file; do not run it.
#
#   feedline_announce N FILE... -- NAME...  shows which packages a script will install, and how long it takes
#   feedline_apt [FILE...]        installs the missing packages of FILE (default: tools/apt_packages.txt)
#   feedline_venv [NAME...]       .venv in the checkout with tools/requirements/NAME.txt
#   feedline_torch [demand]       torch into .venv: its CPU build if available; `demand`: any build
#   feedline_original LIST DIR    a separate environment in DIR with the packages of LIST
#   feedline_overlay LIST DIR     the same, and everything in .venv is importable there too
#   feedline_pictures DIR         Pillow's test pictures, in DIR
#   feedline_step LABEL COMMAND   runs COMMAND with its output in a log, which is shown if it fails
#
# engine_build.sh compiles and installs, test_results.sh counts tests; this file sources both.
# Each function announces the packages that it installs, and does nothing if none are missing.

FEEDLINE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
FEEDLINE_VENV=$FEEDLINE_ROOT/.venv
FEEDLINE_TORCH=2.13.0
FEEDLINE_TREE=$FEEDLINE_ROOT/build/python # the CMake tree of the extension
FEEDLINE_LOGS=$FEEDLINE_ROOT/build/log
export PIP_DISABLE_PIP_VERSION_CHECK=1

feedline_say() { printf '%s\n' "$*"; }

feedline_fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

feedline_names() { # FILE...: the names in these lists, without comments
  sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$@"
}

feedline_step() { # LABEL COMMAND...
  local label=$1 log start=$SECONDS status=0
  shift
  mkdir -p "$FEEDLINE_LOGS"
  log=$FEEDLINE_LOGS/${label//[^a-zA-Z0-9_]/_}.log
  printf '== %s ... ' "$label"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" -eq 0 ]; then
    printf '%d s\n' $((SECONDS - start))
  else
    printf 'FAILED after %d s (exit status %d); %s ends:\n' $((SECONDS - start)) "$status" "${log#"$FEEDLINE_ROOT"/}"
    tail -n 60 "$log"
    # For a compiler, the first errors are more useful than the last lines.
    feedline_say "-- first errors:"
    grep -nE '(error|Error):|FAILED|undefined reference|\*\*\*Failed' "$log" | cut -c 1-300 | head -n 10 || true
  fi
  return "$status"
}

# Prints the command that runs another as root: env for root, otherwise sudo, which asks for a password only on a terminal.
feedline_root_command() {
  if [ "$(id -u)" -eq 0 ]; then
    echo env
  elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    echo "sudo env"
  fi
}

feedline_missing() { # FILE...: the packages in these lists that are not installed
  local name
  for name in $(feedline_names "$@"); do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || printf '%s ' "$name"
  done
}

# Shows which packages a script will install before it starts. Compiling the engine takes about four minutes on two CPUs, and
# less with a filled ccache or an unchanged tree.
feedline_announce() { # MINUTES FILE... -- NAME...: minutes of the other steps, lists for apt-get, lists for .venv
  local minutes=$1 files=() name missing='' python='' compile
  shift
  while [ "$1" != -- ]; do files+=("$1"); shift; done
  shift
  compile=$(((8 + $(feedline_jobs) - 1) / $(feedline_jobs)))
  if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then missing=$(feedline_missing "${files[@]}"); fi
  for name in "$@"; do
    if [ "$name" = torch ]; then
      [ -d "$(echo "$FEEDLINE_VENV"/lib/python3*/site-packages/torch)" ] || python+="torch==$FEEDLINE_TORCH "
    elif [ ! -e "$FEEDLINE_VENV/.requirements-$name" ]; then
      python+="$(feedline_names "$FEEDLINE_ROOT/tools/requirements/$name.txt" | tr '\n' ' ')"
    fi
  done
  feedline_say "tools/$(basename "$0") needs about $((compile + minutes)) minutes on $(feedline_jobs) CPUs for the first run:"
  feedline_say "  about $compile minutes to compile the engine; later runs compile changed files only"
  if [ -n "$missing" ]; then
    feedline_say "  system packages, installed as root with apt-get: ${missing% }"
  else
    feedline_say "  system packages: none are missing"
  fi
  feedline_say "  Python packages in $FEEDLINE_VENV: ${python:-none are missing}"
}

feedline_apt() {
  local files=("$@") missing root
  [ $# -gt 0 ] || files=("$FEEDLINE_ROOT/tools/apt_packages.txt")
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    feedline_say "apt is not available: assuming that the packages in ${files[*]#"$FEEDLINE_ROOT"/} are installed"
    return 0
  fi
  missing=$(feedline_missing "${files[@]}")
  [ -n "$missing" ] || return 0
  root=$(feedline_root_command)
  if [ -z "$root" ]; then
    feedline_say "packages are missing, and installing them needs root or sudo. Run: apt-get install $missing"
    return 1
  fi
  feedline_say "installing with apt-get: $missing"
  # Old package lists may be sufficient.
  # shellcheck disable=SC2086  # both are lists of words
  feedline_step "apt-get update" $root apt-get -q update || feedline_say "using the existing package lists"
  # shellcheck disable=SC2086
  feedline_step "apt-get install" $root DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $missing
}

feedline_python() { # prints the path of a Python >= 3.11; prefers $PYTHON
  local name
  for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$name"
      return 0
    fi
  done
  feedline_say "Feedline needs Python 3.11 or newer on PATH (or in the variable PYTHON)" >&2
  return 1
}

# --no-compile: most modules of torch, SciPy and botocore are never imported, and Python compiles the others when they are.
feedline_pip() {
  [ "$1" != install ] || set -- install --no-compile "${@:2}"
  "$FEEDLINE_VENV/bin/python" -m pip --require-virtualenv "$@"
}

feedline_venv() {
  local names=(build "$@") files=() name python stamp wanted
  if ! "$FEEDLINE_VENV/bin/python" -c 'import pip' 2>/dev/null; then
    python=$(feedline_python) || return 1
    feedline_say "creating a virtual environment in .venv with $("$python" --version)"
    rm -rf "$FEEDLINE_VENV"
    feedline_step "python -m venv" "$python" -m venv "$FEEDLINE_VENV" || return 1
  fi
  for name in "${names[@]}"; do
    stamp=$FEEDLINE_VENV/.requirements-$name
    wanted=$(sha256sum <"$FEEDLINE_ROOT/tools/requirements/$name.txt")
    [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] || files+=("$name")
  done
  [ ${#files[@]} -gt 0 ] || return 0
  local arguments=()
  for name in "${files[@]}"; do arguments+=(-r "$FEEDLINE_ROOT/tools/requirements/$name.txt"); done
  # shellcheck disable=SC2046  # a list of words
  feedline_say "installing into .venv:" $(cd "$FEEDLINE_ROOT/tools/requirements" && feedline_names "${files[@]/%/.txt}" | sort -u)
  feedline_step "pip install ${files[*]}" feedline_pip install "${arguments[@]}" || return 1
  for name in "${files[@]}"; do
    sha256sum <"$FEEDLINE_ROOT/tools/requirements/$name.txt" >"$FEEDLINE_VENV/.requirements-$name"
  done
}

# Creates a separate environment for packages that conflict with others. If LIST contains torch, its CPU build is installed if
# available.
feedline_original() { # LIST DIRECTORY
  local wanted name links uv=("$FEEDLINE_VENV/bin/uv" --native-tls pip install --python "$2/bin/python")
  name=$(basename "$2")
  wanted=$(sha256sum <"$1")
  [ "$(cat "$2/.requirements" 2>/dev/null)" != "$wanted" ] || return 0
  # shellcheck disable=SC2046  # a list of words
  feedline_say "installing into ${2#"$FEEDLINE_ROOT"/}:" $(feedline_names "$1")
  # uv (tools/requirements/test.txt) takes seconds; venv with its own pip takes minutes on a busy machine
  feedline_step "venv of $name" "$FEEDLINE_VENV/bin/uv" venv --clear --python "$FEEDLINE_VENV/bin/python" "$2" || return 1
  links=$(feedline_pip config get global.find-links 2>/dev/null || true) # uv does not read pip's configuration
  [ -z "$links" ] || uv+=(--find-links "$links")
  if feedline_names "$1" | grep -q '^torch=='; then
    "${uv[@]}" --quiet "$(feedline_names "$1" | grep '^torch==')+cpu" >/dev/null 2>&1 || true
  fi
  feedline_step "install of $name" "${uv[@]}" -r "$1" || return 1
  echo "$wanted" >"$2/.requirements"
}

# Pillow's test pictures, from the source distribution of the version in .venv.
feedline_pictures() { # DIRECTORY
  local pillow
  pillow=$(feedline_names "$FEEDLINE_ROOT/tools/requirements/test.txt" | grep '^pillow==')
  [ "$(cat "$1.version" 2>/dev/null)" != "$pillow" ] || return 0
  rm -rf "$1"
  mkdir -p "$1"
  # takes a minute, as pip builds the metadata
  feedline_step "download of Pillow's source" feedline_pip download --no-binary :all: --no-deps --dest "$1/source" "$pillow" || return 1
  tar -xzf "$1"/source/*.tar.gz -C "$1" --strip-components=3 --wildcards '*/Tests/images/*' || return 1
  rm -rf "$1/source"
  echo "$pillow" >"$1.version"
}

feedline_overlay() { # LIST DIRECTORY
  local wanted name
  name=$(basename "$2")
  wanted=$(sha256sum <"$1")
  [ "$(cat "$2/.requirements" 2>/dev/null)" != "$wanted" ] || return 0
  # shellcheck disable=SC2046  # a list of words
  feedline_say "installing into ${2#"$FEEDLINE_ROOT"/}, on top of .venv:" $(feedline_names "$1")
  feedline_step "venv of $name" "$FEEDLINE_VENV/bin/python" -m venv --clear "$2" || return 1
  "$FEEDLINE_VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$("$2/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/overlay.pth"
  feedline_step "pip install of $name" "$2/bin/python" -m pip install --constraint "$FEEDLINE_VENV/torch_constraint.txt" -r "$1" || return 1
  echo "$wanted" >"$2/.requirements"
}

# The public index never has a version with "+cpu". Requesting it finds a CPU build if the user's pip has an index with one, and
# otherwise does not download the build with gigabytes of CUDA libraries.
feedline_torch() {
  local have
  have=$("$FEEDLINE_VENV/bin/python" -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null || true)
  case $have in "$FEEDLINE_TORCH" | "$FEEDLINE_TORCH"+*) return 0 ;; esac
  if feedline_pip install --quiet --dry-run --no-deps "torch==$FEEDLINE_TORCH+cpu" >/dev/null 2>&1; then
    feedline_say "installing into .venv: torch $FEEDLINE_TORCH, CPU build (about 200 MB) and its dependencies"
    feedline_step "pip install torch" feedline_pip install "torch==$FEEDLINE_TORCH+cpu"
  elif [ "${1:-}" = demand ]; then
    feedline_say "installing into .venv: torch $FEEDLINE_TORCH from the package index; on x86-64 with several gigabytes of CUDA" \
      "libraries (for a CPU build, set PIP_EXTRA_INDEX_URL to an index that has one)"
    feedline_step "pip install torch" feedline_pip install "torch==$FEEDLINE_TORCH"
  else
    feedline_say "no CPU build of torch $FEEDLINE_TORCH is available: continuing without torch"
  fi
}

. "$FEEDLINE_ROOT/tools/engine_build.sh"
. "$FEEDLINE_ROOT/tools/test_results.sh"
