// SPDX-License-Identifier: Apache-2.0
// Functions that glibc 2.28 lacks, or has under an older version, so that a module linked on a later system loads
// there.
//
// Linked into the module with hidden visibility: calls from the engine, and from the libraries inside the module,
// resolve to these functions. `.symver` binds one of our names to the version that every glibc of x86-64 has had since
// 2.2.5 (2.12), and that of aarch64 since its first, 2.17. Stateless and thread-safe.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdlib>

#if defined(__x86_64__)
#define FLOOR_OF(name, version) __asm__(".symver floor_" #name "," #name "@GLIBC_" #version)
#else
#define FLOOR_OF(name, version) __asm__(".symver floor_" #name "," #name "@GLIBC_2.17")
#endif

extern "C" {

// ---- the same function under its oldest version ----

double floor_exp(double x) noexcept;
double floor_log(double x) noexcept;
double floor_pow(double x, double y) noexcept;
double floor_hypot(double x, double y) noexcept;
int floor_dlclose(void* handle) noexcept;
char* floor_dlerror() noexcept;
void* floor_dlopen(const char* file, int mode) noexcept;
void* floor_dlsym(void* handle, const char* name) noexcept;
int floor_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument);
int floor_pthread_detach(pthread_t thread);
int floor_pthread_getcpuclockid(pthread_t thread, clockid_t* clock);
int floor_pthread_join(pthread_t thread, void** result);
int floor_pthread_mutex_trylock(pthread_mutex_t* mutex);
int floor_pthread_once(pthread_once_t* once, void (*run)());
int floor_pthread_rwlock_rdlock(pthread_rwlock_t* lock);
int floor_pthread_rwlock_wrlock(pthread_rwlock_t* lock);
int floor_pthread_rwlock_unlock(pthread_rwlock_t* lock);
int floor_pthread_setname_np(pthread_t thread, const char* name);
int floor_pthread_sigmask(int how, const sigset_t* set, sigset_t* before);

FLOOR_OF(exp, 2.2.5);
FLOOR_OF(log, 2.2.5);
FLOOR_OF(pow, 2.2.5);
FLOOR_OF(hypot, 2.2.5);
FLOOR_OF(dlclose, 2.2.5);
FLOOR_OF(dlerror, 2.2.5);
FLOOR_OF(dlopen, 2.2.5);
FLOOR_OF(dlsym, 2.2.5);
FLOOR_OF(pthread_create, 2.2.5);
FLOOR_OF(pthread_detach, 2.2.5);
FLOOR_OF(pthread_getcpuclockid, 2.2.5);
FLOOR_OF(pthread_join, 2.2.5);
FLOOR_OF(pthread_mutex_trylock, 2.2.5);
FLOOR_OF(pthread_once, 2.2.5);
FLOOR_OF(pthread_rwlock_rdlock, 2.2.5);
FLOOR_OF(pthread_rwlock_wrlock, 2.2.5);
FLOOR_OF(pthread_rwlock_unlock, 2.2.5);
FLOOR_OF(pthread_setname_np, 2.12);
FLOOR_OF(pthread_sigmask, 2.2.5);

double exp(double x) noexcept { return floor_exp(x); }
double log(double x) noexcept { return floor_log(x); }
double pow(double x, double y) noexcept { return floor_pow(x, y); }
double hypot(double x, double y) noexcept { return floor_hypot(x, y); }
int dlclose(void* handle) noexcept { return floor_dlclose(handle); }
char* dlerror() noexcept { return floor_dlerror(); }
void* dlopen(const char* file, int mode) noexcept { return floor_dlopen(file, mode); }
void* dlsym(void* __restrict handle, const char* __restrict name) noexcept { return floor_dlsym(handle, name); }

int pthread_create(pthread_t* __restrict thread, const pthread_attr_t* __restrict attributes, void* (*run)(void*),
                   void* __restrict argument) noexcept {
  return floor_pthread_create(thread, attributes, run, argument);
}
int pthread_detach(pthread_t thread) noexcept { return floor_pthread_detach(thread); }
int pthread_getcpuclockid(pthread_t thread, clockid_t* clock) noexcept {
  return floor_pthread_getcpuclockid(thread, clock);
}
int pthread_join(pthread_t thread, void** result) { return floor_pthread_join(thread, result); }
int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept { return floor_pthread_mutex_trylock(mutex); }
int pthread_once(pthread_once_t* once, void (*run)()) { return floor_pthread_once(once, run); }
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept { return floor_pthread_rwlock_rdlock(lock); }
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept { return floor_pthread_rwlock_wrlock(lock); }
int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept { return floor_pthread_rwlock_unlock(lock); }
int pthread_setname_np(pthread_t thread, const char* name) noexcept { return floor_pthread_setname_np(thread, name); }
int pthread_sigmask(int how, const sigset_t* __restrict set, sigset_t* __restrict before) noexcept {
  return floor_pthread_sigmask(how, set, before);
}

// ---- later functions, implemented with system calls ----

pid_t gettid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

// On both processors struct stat is that of the kernel.
int fstatat(int folder, const char* __restrict path, struct stat* __restrict found, int flags) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, found, flags));
}
int stat(const char* __restrict path, struct stat* __restrict found) noexcept {
  return fstatat(AT_FDCWD, path, found, 0);
}
int lstat(const char* __restrict path, struct stat* __restrict found) noexcept {
  return fstatat(AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}
int fstat(int file, struct stat* found) noexcept { return static_cast<int>(syscall(SYS_fstat, file, found)); }
int fstat64(int file, struct stat64* found) noexcept { return static_cast<int>(syscall(SYS_fstat, file, found)); }

// Expat seeds its hash tables with it, with 16 bytes, which the kernel returns at once. Up to 256 bytes are never
// interrupted.
void arc4random_buf(void* buffer, std::size_t bytes) noexcept {
  if (getrandom(buffer, bytes, 0) != static_cast<ssize_t>(bytes)) std::abort();
}

// shared_ptr calls it to choose non-atomic reference counts. Always false: the engine has threads.
extern char __libc_single_threaded;
char __libc_single_threaded = 0;

// Waits until `until` of `clock`, converted to the wall clock, as std::condition_variable did before glibc 2.30.
// Setting the wall clock during the wait changes its length; all our waits check their condition again afterwards.
int floor_wait_by_the_day(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  constexpr long kNanoseconds = 1'000'000'000;
  timespec now{};
  timespec day{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &day);
  day.tv_sec += until->tv_sec - now.tv_sec;
  day.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (day.tv_nsec >= kNanoseconds) {
    ++day.tv_sec;
    day.tv_nsec -= kNanoseconds;
  } else if (day.tv_nsec < 0) {
    --day.tv_sec;
    day.tv_nsec += kNanoseconds;
  }
  return pthread_cond_timedwait(condition, mutex, &day);
}

// Uses glibc's own function if it exists.
int pthread_cond_clockwait(pthread_cond_t* __restrict condition, pthread_mutex_t* __restrict mutex, clockid_t clock,
                           const timespec* __restrict until) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static std::atomic<Wait> found{nullptr};  // concurrent first calls find the same address
  Wait wait = found.load(std::memory_order_relaxed);
  if (wait == nullptr) {
    wait = reinterpret_cast<Wait>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
    if (wait == nullptr) wait = floor_wait_by_the_day;
    found.store(wait, std::memory_order_relaxed);
  }
  return wait(condition, mutex, clock, until);
}

}  // extern "C"
