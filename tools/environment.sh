# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the scripts beside this file share: distribution packages, the virtual environment, the build. Sourced, not run.
#
#   feedline_apt [FILE...]        installs the packages named in FILE (tools/apt_packages.txt) that are missing
#   feedline_venv [NAME...]       .venv in the checkout with tools/requirements/NAME.txt
#   feedline_torch [demand]       torch into .venv: its CPU build where one is at hand; `demand`: any build
#   feedline_original LIST DIR    an environment of its own in DIR with what LIST names
#   feedline_beside LIST DIR      the same, with all that .venv has behind it, Feedline and torch among it
#   feedline_pictures DIR         Pillow's test pictures, in DIR
#   feedline_build [tests]        compiles and installs the package into .venv; `tests`: C++ tests and example too
#   feedline_build_begin [tests]  the same up to the installation, beside what the script does until feedline_build_end
#   feedline_repair WHEEL DIR [SYSTEM]  a self-contained copy of WHEEL in DIR
#   feedline_ctest ARGUMENT...    C++ tests side by side; those that fail beside others once more, alone
#   feedline_pytest_summary LOG...  the last lines of several runs of pytest as one
#   feedline_count LINES WORD...  the sum of the counts before these words
#   feedline_step LABEL COMMAND   runs COMMAND with its output in a log that is shown when it fails
#
# Everything says what it will install before it does, and does nothing where nothing is missing.

FEEDLINE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
FEEDLINE_VENV=$FEEDLINE_ROOT/.venv
FEEDLINE_TORCH=2.13.0
FEEDLINE_TREE=$FEEDLINE_ROOT/build/python # the CMake tree of the extension, and of the C++ tests in tools/test
FEEDLINE_LOGS=$FEEDLINE_ROOT/build/log
export PIP_DISABLE_PIP_VERSION_CHECK=1

feedline_say() { printf '%s\n' "$*"; }

feedline_fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

feedline_names() { # FILE...: the names in them, comments dropped
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
    # A compiler's first error is worth more than its last lines.
    feedline_say "-- the first errors in it:"
    grep -nE '(error|Error):|FAILED|undefined reference|\*\*\*Failed' "$log" | cut -c 1-300 | head -n 10 || true
  fi
  return "$status"
}

# How to become root: nothing for root, else sudo, asking for a password only on a terminal.
feedline_root_command() {
  if [ "$(id -u)" -eq 0 ]; then
    echo env
  elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    echo "sudo env"
  fi
}

feedline_missing() { # FILE...: the packages in them that are not installed
  local name
  for name in $(feedline_names "$@"); do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || printf '%s ' "$name"
  done
}

feedline_apt() {
  local files=("$@") missing root
  [ $# -gt 0 ] || files=("$FEEDLINE_ROOT/tools/apt_packages.txt")
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    feedline_say "no apt here: expecting what ${files[*]#"$FEEDLINE_ROOT"/} names to be installed already"
    return 0
  fi
  missing=$(feedline_missing "${files[@]}")
  [ -n "$missing" ] || return 0
  root=$(feedline_root_command)
  if [ -z "$root" ]; then
    feedline_say "these packages are missing, and installing them takes root or sudo. Please run: apt-get install $missing"
    return 1
  fi
  feedline_say "installing with apt-get: $missing"
  # A list of packages that cannot be refreshed may still do.
  # shellcheck disable=SC2086  # both are lists of words
  feedline_step "apt-get update" $root apt-get -q update || feedline_say "going on with the package lists as they are"
  # shellcheck disable=SC2086
  feedline_step "apt-get install" $root DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $missing
}

feedline_python() { # a Python >= 3.11, the user's first choice first
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

feedline_pip() { "$FEEDLINE_VENV/bin/python" -m pip --require-virtualenv "$@"; }

feedline_venv() {
  local names=(build "$@") files=() name python stamp wanted
  if ! "$FEEDLINE_VENV/bin/python" -c 'import pip' 2>/dev/null; then
    python=$(feedline_python) || return 1
    feedline_say "making a virtual environment in .venv with $("$python" --version)"
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

# An environment of its own for a library that would not bear others beside it. Where torch is asked for, that is the
# CPU build if one is at hand.
feedline_original() { # LIST DIRECTORY
  local wanted name links uv=("$FEEDLINE_VENV/bin/uv" --native-tls pip install --python "$2/bin/python")
  name=$(basename "$2")
  wanted=$(sha256sum <"$1")
  [ "$(cat "$2/.requirements" 2>/dev/null)" != "$wanted" ] || return 0
  # shellcheck disable=SC2046  # a list of words
  feedline_say "installing into ${2#"$FEEDLINE_ROOT"/}:" $(feedline_names "$1")
  # uv, of tools/requirements/test.txt: seconds, where venv with a pip of its own takes minutes on a busy machine
  feedline_step "venv of $name" "$FEEDLINE_VENV/bin/uv" venv --clear --python "$FEEDLINE_VENV/bin/python" "$2" || return 1
  links=$(feedline_pip config get global.find-links 2>/dev/null || true) # which uv does not read
  [ -z "$links" ] || uv+=(--find-links "$links")
  if feedline_names "$1" | grep -q '^torch=='; then
    "${uv[@]}" --quiet "$(feedline_names "$1" | grep '^torch==')+cpu" >/dev/null 2>&1 || true
  fi
  feedline_step "install of $name" "${uv[@]}" -r "$1" || return 1
  echo "$wanted" >"$2/.requirements"
}

# The pictures that Pillow is tested with, out of its source distribution; of the version that .venv has.
feedline_pictures() { # DIRECTORY
  local pillow
  pillow=$(feedline_names "$FEEDLINE_ROOT/tools/requirements/test.txt" | grep '^pillow==')
  [ "$(cat "$1.version" 2>/dev/null)" != "$pillow" ] || return 0
  rm -rf "$1"
  mkdir -p "$1"
  # pip builds its metadata, which takes a minute
  feedline_step "download of Pillow's source" feedline_pip download --no-binary :all: --no-deps --dest "$1/source" "$pillow" || return 1
  tar -xzf "$1"/source/*.tar.gz -C "$1" --strip-components=3 --wildcards '*/Tests/images/*' || return 1
  rm -rf "$1/source"
  echo "$pillow" >"$1.version"
}

feedline_beside() { # LIST DIRECTORY
  local wanted name
  name=$(basename "$2")
  wanted=$(sha256sum <"$1")
  [ "$(cat "$2/.requirements" 2>/dev/null)" != "$wanted" ] || return 0
  # shellcheck disable=SC2046  # a list of words
  feedline_say "installing into ${2#"$FEEDLINE_ROOT"/}, beside .venv:" $(feedline_names "$1")
  feedline_step "venv of $name" "$FEEDLINE_VENV/bin/python" -m venv --clear "$2" || return 1
  "$FEEDLINE_VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$("$2/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth"
  feedline_step "pip install of $name" "$2/bin/python" -m pip install --constraint "$FEEDLINE_VENV/torch_constraint.txt" -r "$1" || return 1
  echo "$wanted" >"$2/.requirements"
}

# A version with "+cpu" is never on the public index, so asking for it finds a CPU build where the user's pip knows
# of one, and costs no download of the build with gigabytes of CUDA where it does not.
feedline_torch() {
  local have
  have=$("$FEEDLINE_VENV/bin/python" -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null || true)
  case $have in "$FEEDLINE_TORCH" | "$FEEDLINE_TORCH"+*) return 0 ;; esac
  if feedline_pip install --quiet --dry-run --no-deps "torch==$FEEDLINE_TORCH+cpu" >/dev/null 2>&1; then
    feedline_say "installing into .venv: torch $FEEDLINE_TORCH, CPU build (about 200 MB and what it depends on)"
    feedline_step "pip install torch" feedline_pip install "torch==$FEEDLINE_TORCH+cpu"
  elif [ "${1:-}" = demand ]; then
    feedline_say "installing into .venv: torch $FEEDLINE_TORCH as the package index has it; on x86-64 with its CUDA libraries," \
      "some gigabytes (to take a CPU build, put an index that has one into PIP_EXTRA_INDEX_URL)"
    feedline_step "pip install torch" feedline_pip install "torch==$FEEDLINE_TORCH"
  else
    feedline_say "no CPU build of torch $FEEDLINE_TORCH at hand: going on without torch"
  fi
}

# Compilers at once: one per CPU, but none without 1.5 GB of its own (the kernels, built for every SIMD variant, take
# over 1 GB).
feedline_jobs() {
  local cpus memory
  cpus=$(nproc)
  memory=$(awk '/^MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo $((cpus < memory ? cpus : memory))
}

# One CMake tree for the extension and, for tools/test, for the C++ tests: the engine is compiled once. The package is
# built as a wheel, kept in build/wheel, and that is what .venv gets.
feedline_compile() {
  local tests=OFF target=_engine precompiled=ON setting settings=()
  if [ "${1:-}" = tests ]; then
    tests=ON
    target=all
  fi
  # ccache saves more of the engine (the trees of wheels have it from there: without precompiled headers)
  ! command -v ccache >/dev/null || precompiled=TESTS
  for setting in build-dir="$FEEDLINE_TREE" build.targets="$target" \
    cmake.define.FEEDLINE_TESTS="$tests" cmake.define.FEEDLINE_EXAMPLES="$tests" cmake.define.FEEDLINE_BENCH=OFF \
    cmake.define.FEEDLINE_TEST_OPTIONS=-O0 cmake.define.FEEDLINE_TEST_UNITY=4 cmake.define.FEEDLINE_PRECOMPILED="$precompiled"; do
    settings+=(--config-settings "$setting")
  done
  rm -rf "$FEEDLINE_ROOT/build/wheel"
  CMAKE_BUILD_PARALLEL_LEVEL=$(feedline_jobs) feedline_step "build" feedline_pip wheel -v --no-build-isolation --no-deps \
    --no-index -w "$FEEDLINE_ROOT/build/wheel" "${settings[@]}" "$FEEDLINE_ROOT"
}

feedline_install() {
  feedline_step "install" feedline_pip install --no-deps --no-index --force-reinstall "$FEEDLINE_ROOT"/build/wheel/feedline-*.whl
}

feedline_build() { feedline_compile "$@" && feedline_install; }

# Compilers want every CPU; who installs packages waits for networks and disks. What compiling says, feedline_build_end shows. A
# script that ends before that ends the compilers: they are a group of processes of their own.
feedline_build_begin() { # [tests]
  mkdir -p "$FEEDLINE_LOGS"
  feedline_say "== build, beside what follows"
  set -m
  feedline_compile "$@" >"$FEEDLINE_LOGS/beside.log" 2>&1 &
  FEEDLINE_COMPILING=$!
  set +m
  trap 'kill -- "-$FEEDLINE_COMPILING" 2>/dev/null || true' EXIT
}

feedline_build_end() {
  local status=0
  wait "$FEEDLINE_COMPILING" || status=$?
  trap - EXIT
  cat "$FEEDLINE_LOGS/beside.log"
  [ "$status" -ne 0 ] || feedline_install || status=$?
  return "$status"
}

feedline_repair() { # WHEEL DIR [SYSTEM]: SYSTEM is the root of another processor's system that its libraries are in
  local name copy system=${3:-} path=$FEEDLINE_VENV/bin:$PATH search=()
  name=$(basename "$1" .whl)
  copy=$FEEDLINE_ROOT/build/unrepaired/$name.whl
  mkdir -p "$(dirname "$copy")"
  cp "$1" "$copy"
  if command -v dpkg-query >/dev/null; then
    feedline_step "licences of bundled libraries" "$FEEDLINE_VENV/bin/python" "$FEEDLINE_ROOT/tools/bundle_notices.py" "$copy" \
      ${system:+"$system"} || return 1
  fi
  local floor=$FEEDLINE_ROOT/build/glibc_floor
  rm -rf "$floor"
  case $(uname -m) in
    x86_64 | aarch64)
      feedline_step "libraries for glibc 2.28" "$FEEDLINE_VENV/bin/python" "$FEEDLINE_ROOT/tools/glibc_floor.py" "$copy" "$floor" \
        ${system:+"$system"} || return 1
      ;;
  esac
  if [ -n "$system" ]; then
    search=(--ldpaths "$floor:$(echo "$system"/usr/lib/*-linux-gnu)")
    path=/usr/aarch64-linux-gnu/bin:$path # its strip
  fi
  # auditwheel finds patchelf on PATH, and the libraries that go into the wheel where LD_LIBRARY_PATH leads first
  PATH=$path LD_LIBRARY_PATH=$floor feedline_step "auditwheel repair $name" "$FEEDLINE_VENV/bin/auditwheel" \
    repair --strip --zip-compression-level 9 "${search[@]}" -w "$2" "$copy"
}

# Two CPUs that several tests and their processes share are at times not there for seconds. What fails alone too is broken;
# what does not is worth a look, and is named in FEEDLINE_UNSTEADY, but holds nobody's work up.
feedline_ctest() { # TREE ARGUMENT...
  local failed=$1/Testing/Temporary/LastTestsFailed.log count
  FEEDLINE_UNSTEADY=''
  rm -f "$failed"
  ctest --test-dir "$@" && return 0
  [ -f "$failed" ] || return 1
  count=$(wc -l <"$failed")
  [ "$count" -gt 0 ] && [ "$count" -le 5 ] || return 1
  feedline_say "== $count failed beside others: once more, alone"
  FEEDLINE_UNSTEADY=$(sed 's/^[0-9]*:/  /' "$failed")
  ctest --test-dir "$@" --rerun-failed -j 1 --output-junit "$1/Testing/again.xml" || return 1
  feedline_say "passed only alone, the second time:" "$FEEDLINE_UNSTEADY"
}

# In pytest's words; nothing where no test ran.
feedline_pytest_summary() { # LOG...
  local log lines
  lines=$(for log in "$@"; do
    sed -n 's/^=* *\(.*\(passed\|failed\|error\|skipped\|no tests ran\).*\) =*$/\1/p' "$log" | tail -n 1
  done)
  grep -qE '[0-9] (passed|failed|error|skipped)' <<<"$lines" || return 0
  echo "$(feedline_count "$lines" passed) passed, $(feedline_count "$lines" failed error) failed," \
    "$(feedline_count "$lines" skipped) skipped"
}

feedline_count() { # LINES WORD...
  local lines=$1 word sum=0 count
  shift
  for word in "$@"; do
    for count in $(sed -nE "s/(.*[^0-9]|^)([0-9]+) $word.*/\2/p" <<<"$lines"); do
      sum=$((sum + count))
    done
  done
  echo "$sum"
}
