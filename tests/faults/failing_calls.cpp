// SPDX-License-Identifier: Apache-2.0
// An LD_PRELOAD library that makes one call of a process tree fail, or every call from one on.
//
// It counts the calls that write below a folder, in all processes that share a counter file, and fails the n-th one.
// faults_arm() reads the settings, so that a process can load Feedline first and then fork a process for each fault:
//
//   FAULTS_ROOT     absolute path of the folder; calls on other files are passed on
//   FAULTS_COUNTER  existing file of 8 bytes with the number of calls
//   FAULTS_AT       n, from 1; 0 only counts
//   FAULTS_ACTION   number of an error, "short" (half of a write) or "kill" (SIGKILL before the call)
//   FAULTS_LASTING  "1": the n-th call and all later ones, as on a full disk, which allows removals
//   FAULTS_LOG      a line "number call path" is appended for each call
//
// fsync is omitted: processes are killed, not the kernel.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum class Action { kNone, kError, kShort, kKill };

char root[4096];
std::size_t root_bytes = 0;
std::atomic<std::uint64_t>* calls = nullptr;
std::uint64_t fails_at = 0;
bool lasts = false;
Action action = Action::kNone;
int error_number = 0;
int log_fd = -1;

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

#define NEXT(name) static const auto real = next<decltype(&name)>(#name)

bool is_below(const char* path) {
  return std::strncmp(path, root, root_bytes) == 0 && (path[root_bytes] == '/' || path[root_bytes] == '\0');
}

// Whether the path, relative to the folder `at`, is below the root; `found` is its absolute form.
bool resolved(int at, const char* path, char (&found)[8192]) {
  if (calls == nullptr || path == nullptr) return false;
  if (path[0] == '/') {
    std::snprintf(found, sizeof found, "%s", path);
    return is_below(found);
  }
  char folder[4096];
  if (at == AT_FDCWD) {
    if (getcwd(folder, sizeof folder) == nullptr) return false;
  } else {
    char link[64];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    const ssize_t size = readlink(link, folder, sizeof folder - 1);
    if (size <= 0) return false;
    folder[size] = '\0';
  }
  std::snprintf(found, sizeof found, "%s/%s", folder, path);
  return is_below(found);
}

bool resolved(int fd, char (&found)[8192]) {
  if (calls == nullptr || fd < 0) return false;
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const int saved = errno;
  const ssize_t size = readlink(link, found, sizeof found - 1);
  errno = saved;
  if (size <= 0) return false;
  found[size] = '\0';
  return is_below(found);
}

// Counts a call. Returns the action that replaces the call.
Action fault(const char* name, const char* path) {
  const std::uint64_t number = calls->fetch_add(1) + 1;
  if (log_fd >= 0) {
    char line[8400];
    const int size =
        std::snprintf(line, sizeof line, "%llu %s %s\n", static_cast<unsigned long long>(number), name, path);
    NEXT(write);
    static_cast<void>(!real(log_fd, line, static_cast<std::size_t>(size)));
  }
  if (fails_at == 0 || number < fails_at || (number > fails_at && !lasts)) return Action::kNone;
  if (action == Action::kKill) kill(getpid(), SIGKILL);
  return action;
}

// For calls that cannot be partial.
bool fails(const char* name, const char* path, bool needs_space = true) {
  if (fault(name, path) != Action::kError || (!needs_space && error_number == ENOSPC)) return false;
  errno = error_number;
  return true;
}

bool writes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0; }

__attribute__((constructor)) void arm_at_start();

}  // namespace

extern "C" {

void faults_arm() {
  calls = nullptr;
  const char* folder = getenv("FAULTS_ROOT");
  const char* counter = getenv("FAULTS_COUNTER");
  if (folder == nullptr || counter == nullptr) return;
  std::snprintf(root, sizeof root, "%s", folder);
  root_bytes = std::strlen(root);
  const char* at = getenv("FAULTS_AT");
  fails_at = at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
  const char* lasting = getenv("FAULTS_LASTING");
  lasts = lasting != nullptr && std::strcmp(lasting, "1") == 0;
  const char* wanted = getenv("FAULTS_ACTION");
  error_number = wanted == nullptr ? 0 : std::atoi(wanted);
  action = error_number > 0                                         ? Action::kError
           : wanted != nullptr && std::strcmp(wanted, "short") == 0 ? Action::kShort
           : wanted != nullptr && std::strcmp(wanted, "kill") == 0  ? Action::kKill
                                                                    : Action::kNone;
  using Open = int (*)(const char*, int, ...);
  const auto real_open = next<Open>("open");
  if (const char* log = getenv("FAULTS_LOG"); log != nullptr && log[0] != '\0') {
    log_fd = real_open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }
  const int fd = real_open(counter, O_RDWR | O_CLOEXEC, 0);
  if (fd < 0) return;
  void* mapped = next<decltype(&mmap)>("mmap")(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped != MAP_FAILED) calls = static_cast<std::atomic<std::uint64_t>*>(mapped);
}

#define OPEN(name, AT, AT_DECLARED, AT_PASSED)                                        \
  int name(AT_DECLARED const char* path, int flags, ...) {                            \
    mode_t mode = 0;                                                                  \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {                 \
      va_list more;                                                                   \
      va_start(more, flags);                                                          \
      mode = va_arg(more, mode_t);                                                    \
      va_end(more);                                                                   \
    }                                                                                 \
    NEXT(name);                                                                       \
    char found[8192];                                                                 \
    if (writes(flags) && resolved(AT, path, found) && fails(#name, found)) return -1; \
    return real(AT_PASSED path, flags, mode);                                         \
  }
#define COMMA ,
OPEN(open, AT_FDCWD, , )
OPEN(open64, AT_FDCWD, , )
OPEN(openat, at, int at COMMA, at COMMA)
OPEN(openat64, at, int at COMMA, at COMMA)

FILE* fopen(const char* path, const char* mode) {
  NEXT(fopen);
  char found[8192];
  if (std::strpbrk(mode, "wa+") != nullptr && resolved(AT_FDCWD, path, found) && fails("fopen", found)) return nullptr;
  return real(path, mode);
}

ssize_t write(int fd, const void* data, size_t size) {
  NEXT(write);
  char found[8192];
  if (!resolved(fd, found)) return real(fd, data, size);
  const Action wanted = fault("write", found);
  if (wanted == Action::kError) return errno = error_number, -1;
  return real(fd, data, wanted == Action::kShort ? (size + 1) / 2 : size);
}

#define PWRITE(name, Offset)                                                         \
  ssize_t name(int fd, const void* data, size_t size, Offset offset) {               \
    NEXT(name);                                                                      \
    char found[8192];                                                                \
    if (!resolved(fd, found)) return real(fd, data, size, offset);                   \
    const Action wanted = fault(#name, found);                                       \
    if (wanted == Action::kError) return errno = error_number, -1;                   \
    return real(fd, data, wanted == Action::kShort ? (size + 1) / 2 : size, offset); \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t writev(int fd, const struct iovec* parts, int count) {
  NEXT(writev);
  char found[8192];
  if (!resolved(fd, found)) return real(fd, parts, count);
  const Action wanted = fault("writev", found);
  if (wanted == Action::kError) return errno = error_number, -1;
  return real(fd, parts, wanted == Action::kShort ? (count + 1) / 2 : count);
}

#define OF_FD(Result, name, failed, needs_space, DECLARED, PASSED)              \
  Result name DECLARED {                                                        \
    NEXT(name);                                                                 \
    char found[8192];                                                           \
    if (resolved(fd, found) && fails(#name, found, needs_space)) return failed; \
    return real PASSED;                                                         \
  }
OF_FD(int, ftruncate, -1, true, (int fd, off_t size), (fd, size))
OF_FD(int, ftruncate64, -1, true, (int fd, off64_t size), (fd, size))
OF_FD(int, posix_fallocate, error_number, true, (int fd, off_t offset, off_t size), (fd, offset, size))
OF_FD(int, posix_fallocate64, error_number, true, (int fd, off64_t offset, off64_t size), (fd, offset, size))
OF_FD(int, fallocate, -1, true, (int fd, int mode, off_t offset, off_t size), (fd, mode, offset, size))
OF_FD(ssize_t, copy_file_range, -1, true, (int from, off64_t* in, int fd, off64_t* out, size_t size, unsigned flags),
      (from, in, fd, out, size, flags))
OF_FD(ssize_t, sendfile, -1, true, (int fd, int from, off_t* offset, size_t size), (fd, from, offset, size))
OF_FD(ssize_t, sendfile64, -1, true, (int fd, int from, off64_t* offset, size_t size), (fd, from, offset, size))
OF_FD(void*, mmap, MAP_FAILED, false, (void* address, size_t size, int protection, int flags, int fd, off_t offset),
      (address, size, protection, flags, fd, offset))
OF_FD(void*, mmap64, MAP_FAILED, false, (void* address, size_t size, int protection, int flags, int fd, off64_t offset),
      (address, size, protection, flags, fd, offset))

#define SYNC(name)                                              \
  int name(int fd) {                                            \
    char found[8192];                                           \
    return resolved(fd, found) && fails(#name, found) ? -1 : 0; \
  }
SYNC(fsync)
SYNC(fdatasync)

#define OF_PATH(name, AT, path, needs_space, DECLARED, PASSED)                    \
  int name DECLARED {                                                             \
    NEXT(name);                                                                   \
    char found[8192];                                                             \
    if (resolved(AT, path, found) && fails(#name, found, needs_space)) return -1; \
    return real PASSED;                                                           \
  }
OF_PATH(mkdir, AT_FDCWD, path, true, (const char* path, mode_t mode), (path, mode))
OF_PATH(mkdirat, at, path, true, (int at, const char* path, mode_t mode), (at, path, mode))
OF_PATH(truncate, AT_FDCWD, path, true, (const char* path, off_t size), (path, size))
OF_PATH(rename, AT_FDCWD, to, true, (const char* from, const char* to), (from, to))
OF_PATH(renameat, at, to, true, (int from_at, const char* from, int at, const char* to), (from_at, from, at, to))
OF_PATH(renameat2, at, to, true, (int from_at, const char* from, int at, const char* to, unsigned flags),
        (from_at, from, at, to, flags))
OF_PATH(link, AT_FDCWD, to, true, (const char* from, const char* to), (from, to))
OF_PATH(linkat, at, to, true, (int from_at, const char* from, int at, const char* to, int flags),
        (from_at, from, at, to, flags))
OF_PATH(symlink, AT_FDCWD, to, true, (const char* from, const char* to), (from, to))
OF_PATH(unlink, AT_FDCWD, path, false, (const char* path), (path))
OF_PATH(unlinkat, at, path, false, (int at, const char* path, int flags), (at, path, flags))
OF_PATH(rmdir, AT_FDCWD, path, false, (const char* path), (path))
OF_PATH(utimensat, at, path, false, (int at, const char* path, const struct timespec* times, int flags),
        (at, path, times, flags))

}  // extern "C"

namespace {

void arm_at_start() { faults_arm(); }

}  // namespace
