# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Compiling the engine. Sourced by environment.sh.
#
#   feedline_build                compiles and installs the package into .venv
#   feedline_build_begin          compiles in the background until feedline_build_end, which installs
#   feedline_repair WHEEL DIR [SYSTEM]  a self-contained copy of WHEEL in DIR
#   feedline_sanitized PRESET TARGET... builds TARGETs of the presets asan or tsan, and sets FEEDLINE_SANITIZED to the tree
#   feedline_cpp_tests ARGUMENT...      runs tools/cpp_tests.py without address space randomisation

# Prints the number of parallel compilers: one per CPU, if each has 1.5 GB of memory. The kernels, built for every SIMD variant,
# need over 1 GB.
feedline_jobs() {
  local cpus memory
  cpus=$(nproc)
  memory=$(awk '/^MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo $((cpus < memory ? cpus : memory))
}

# Builds the package as a wheel in build/wheel, without C++ tests: those are compiled in the sanitizers' trees.
feedline_compile() {
  local setting settings=()
  for setting in build-dir="$FEEDLINE_TREE" cmake.define.FEEDLINE_TESTS=OFF cmake.define.FEEDLINE_EXAMPLES=OFF \
    cmake.define.FEEDLINE_BENCH=OFF; do
    settings+=(--config-settings "$setting")
  done
  rm -rf "$FEEDLINE_ROOT/build/wheel"
  CMAKE_BUILD_PARALLEL_LEVEL=$(feedline_jobs) feedline_step "build" feedline_pip wheel -v --no-build-isolation --no-deps \
    --no-index -w "$FEEDLINE_ROOT/build/wheel" "${settings[@]}" "$FEEDLINE_ROOT"
}

feedline_install() {
  feedline_step "install" feedline_pip install --no-deps --no-index --force-reinstall "$FEEDLINE_ROOT"/build/wheel/feedline-*.whl
}

feedline_build() { feedline_compile && feedline_install; }

# Compiles in the background, as installing packages mostly waits for networks and disks. feedline_build_end shows the output.
# If the script exits first, it stops the compilers, which run in a separate process group.
feedline_build_begin() {
  mkdir -p "$FEEDLINE_LOGS"
  feedline_say "== build, in the background"
  set -m
  feedline_compile >"$FEEDLINE_LOGS/background_build.log" 2>&1 &
  FEEDLINE_COMPILING=$!
  set +m
  trap 'kill -- "-$FEEDLINE_COMPILING" 2>/dev/null || true' EXIT
}

feedline_build_end() {
  local status=0
  ! kill -0 "$FEEDLINE_COMPILING" 2>/dev/null || feedline_say "waiting for the build"
  wait "$FEEDLINE_COMPILING" || status=$?
  trap - EXIT
  cat "$FEEDLINE_LOGS/background_build.log"
  [ "$status" -ne 0 ] || feedline_install || status=$?
  return "$status"
}

feedline_repair() { # WHEEL DIR [SYSTEM]: SYSTEM is the root folder of a system for another processor
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
    path=/usr/aarch64-linux-gnu/bin:$path # for strip
  fi
  # auditwheel finds patchelf on PATH, and the libraries to bundle first in LD_LIBRARY_PATH
  PATH=$path LD_LIBRARY_PATH=$floor feedline_step "auditwheel repair $name" "$FEEDLINE_VENV/bin/auditwheel" \
    repair --strip --zip-compression-level 9 "${search[@]}" -w "$2" "$copy"
}

# Without address space randomisation, which may put mappings into the sanitizers' shadow memory.
feedline_fixed_addresses() {
  if setarch -R true 2>/dev/null; then setarch -R "$@"; else "$@"; fi
}

# Uses clang 19, which compiles sanitized code in half the time, or g++ if clang is not installed.
feedline_sanitized() { # PRESET TARGET...
  local preset=$1
  shift
  command -v clang++-19 >/dev/null || preset+=_gcc
  # shellcheck disable=SC2034  # the callers use it
  FEEDLINE_SANITIZED=$FEEDLINE_ROOT/build/$preset
  cmake --preset "$preset" && feedline_fixed_addresses cmake --build --preset "$preset" -j "$(feedline_jobs)" --target "$@"
}

# Sanitizer builds also check std::vector's bounds, and leaks are errors.
feedline_cpp_tests() { # TREE ARGUMENT...
  ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
    TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 feedline_fixed_addresses python3 "$FEEDLINE_ROOT/tools/cpp_tests.py" "$@"
}
