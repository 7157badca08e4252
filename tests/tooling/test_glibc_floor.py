# SPDX-License-Identifier: Apache-2.0
"""python/bindings/glibc_floor: what stands in front of glibc's functions does what they do."""

from __future__ import annotations

import math
import os
import platform
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

FUNCTIONS = Path(__file__).parents[2] / "python" / "bindings" / "glibc_floor" / "functions.cpp"
PROGRAM = r"""
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
extern "C" {
int floor_wait_by_the_day(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
int pthread_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
}
void* wake(void* condition) { pthread_cond_signal(static_cast<pthread_cond_t*>(condition)); return condition; }
void show(int result, const struct stat& s) {
  const long long inode = s.st_ino, size = s.st_size, changed = s.st_mtime;
  std::printf("%d %lld %lld %o %lld\n", result ? errno : 0, inode, size, s.st_mode, changed);
}
using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
double waited(Wait wait, long ms) {
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  timespec begin, until, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  until = begin;
  until.tv_nsec += ms * 1000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_mutex_lock(&mutex);
  while (wait(&condition, &mutex, CLOCK_MONOTONIC, &until) != ETIMEDOUT) {}
  pthread_mutex_unlock(&mutex);
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (end.tv_sec - begin.tv_sec) * 1e3 + (end.tv_nsec - begin.tv_nsec) / 1e6;
}
int main(int, char** arguments) {
  struct stat found {};
  for (int i = 1; i <= 2; ++i) {
    show(stat(arguments[i], &found), found);
    show(lstat(arguments[i], &found), found);
  }
  show(fstat(0, &found), found);
  const int missing = stat("/nowhere/at all", &found);
  std::printf("%d %d\n", missing, errno == ENOENT);
  const double x = std::atof(arguments[3]), y = std::atof(arguments[4]);
  std::printf("%a %a %a %a\n", std::exp(x), std::log(x), std::pow(x, y), std::hypot(x, y));
  const bool late = waited(floor_wait_by_the_day, 60) >= 59 && waited(pthread_cond_clockwait, 60) >= 59;
  std::printf("%d %d\n", gettid() == getpid(), late);
  pthread_t thread;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  void* result = nullptr;
  const int made = pthread_create(&thread, nullptr, wake, &condition);
  const int joined = pthread_join(thread, &result);
  std::printf("%d %d %d\n", made, joined, result == &condition);
}
"""

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("g++") is None, reason="a compiler for x86-64 is not installed"
)


AARCH64 = Path(__file__).parents[2] / "build" / "systems" / "aarch64"  # by tools/systems


class Built(NamedTuple):
    path: Path
    run: list[str]  # what starts it


@pytest.fixture(scope="module", params=["x86_64", "aarch64"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    compiler, runner = ["g++"], []
    if request.param == "aarch64":
        compiler = ["aarch64-linux-gnu-g++", f"--sysroot={AARCH64}", "-static-libstdc++"]
        runner = ["qemu-aarch64-static", "-L", str(AARCH64)]
        if not AARCH64.is_dir() or not all(shutil.which(words[0]) for words in (compiler, runner)):
            pytest.skip("no system for aarch64 in build/systems: tools/systems aarch64 makes one")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "program.cpp").write_text(PROGRAM)
    options = ["-std=c++23", "-fno-builtin", "-fvisibility=hidden", "program.cpp", str(FUNCTIONS), "-o", "program"]
    subprocess.run([*compiler, *options], cwd=folder, check=True)
    return Built(folder / "program", [*runner, str(folder / "program")])


def printed(found: os.stat_result) -> str:
    return f"0 {found.st_ino} {found.st_size} {found.st_mode:o} {int(found.st_mtime)}"


@pytest.mark.parametrize(("x", "y"), [(2.2, 0.4545), (0.001, -3.25), (700.5, 1.0)])
def test_functions_are_glibcs_and_the_kernels(program: Built, tmp_path: Path, x: float, y: float) -> None:
    """Files are those that Python sees, numbers those of the libm here, to the bit; waits end when they should."""
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"12345")
    link.symlink_to(file)
    with file.open() as opened:
        command = [*program.run, file, link, repr(x), repr(y)]
        done = subprocess.run(command, stdin=opened, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[:5] == [printed(path) for path in (file.stat(), file.lstat(), link.stat(), link.lstat(), file.stat())]
    assert lines[5] == "-1 1"
    numbers = [float.fromhex(text) for text in lines[6].split()]
    expected = [math.exp(x), math.log(x), math.pow(x, y), float.fromhex(lines[6].split()[3])]
    assert struct.pack("4d", *numbers) == struct.pack("4d", *expected)
    assert math.isclose(numbers[3], math.hypot(x, y), rel_tol=1e-15)
    assert lines[7:] == ["1 1", "0 0 1"]


def test_the_program_asks_for_nothing_later(program: Built) -> None:
    """But what its own start asks for."""
    asked = subprocess.run(["readelf", "-W", "--dyn-syms", program.path], capture_output=True, text=True, check=True)
    found = re.findall(r" (\w+)@+GLIBC_(\d+)\.(\d+)", asked.stdout)
    assert {"pow", "pthread_create"} <= {name for name, *_ in found}
    later = {name for name, major, minor in found if (int(major), int(minor)) > (2, 28)}
    assert later <= {"__libc_start_main"}
