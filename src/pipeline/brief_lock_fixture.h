// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: sees every system call, and every allocation, that a thread makes while it holds a BriefLock.
//
// The kernel does the watching (syscall user dispatch, Linux 5.11): it looks at holds_brief_lock before each system
// call of a thread that asked for it, and sends SIGSYS instead where it is 1. The handler writes the call's number down
// and makes the call. So nothing escapes: no library, no system call without a function of the C library. Threads ask
// for it at the next pthread mutex that they lock, allocations tell of themselves: steady_state_test.cpp, which
// interposes both.

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>

#include "pipeline/brief_lock.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FEEDLINE_WATCH_LOCKS 1
#else
#define FEEDLINE_WATCH_LOCKS 0
#endif

namespace feedline::pipeline::lock_watch {

inline std::atomic<bool> is_on = false;  // threads are to ask for it
inline thread_local bool asked = false;
inline std::array<std::atomic<std::uint64_t>, 1024> calls{};  // by number, under the lock
inline std::atomic<std::uint64_t> allocations = 0;            // likewise

// Under the lock: the caller allocates.
inline void note_allocation() {
  if (holds_brief_lock != 0) allocations.fetch_add(1, std::memory_order_relaxed);
}

#if FEEDLINE_WATCH_LOCKS
constexpr int kSetDispatch = 59, kDispatchOn = 1;  // PR_SET_SYSCALL_USER_DISPATCH, which older headers do not know

// As the kernel has it.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

// The clock that is read without a system call wherever the machine allows it.
inline bool is_excused(long number, long first_argument) {
  return number == SYS_clock_gettime && first_argument == CLOCK_MONOTONIC;
}

inline void handle(int /*signal*/, siginfo_t* info, void* context) {
  holds_brief_lock = 0;  // what follows is the watcher's
  const int error = errno;
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const long number = info->si_syscall;
  if (!is_excused(number, registers[REG_RDI])) calls[static_cast<std::size_t>(number) % calls.size()].fetch_add(1);
  if (number == SYS_clone || number == SYS_clone3 || number == SYS_vfork) {
    registers[REG_RAX] = -ENOSYS;  // the child would come back on this stack
  } else {
    const long result = ::syscall(number, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                  registers[REG_R10], registers[REG_R8], registers[REG_R9]);
    registers[REG_RAX] = result == -1 ? -errno : result;
  }
  errno = error;
  holds_brief_lock = 1;
}

// The calling thread is watched from now on. false: this kernel cannot.
inline bool ask() {
  asked = true;
  KernelAction action{};
  ::syscall(SYS_rt_sigaction, SIGSYS, nullptr, &action, sizeof action.mask);
  // the handler's return is a system call too, at an address that only the kernel's own record of the handler tells
  constexpr std::size_t kReturnBytes = 16;
  if (::prctl(kSetDispatch, kDispatchOn, action.restorer, kReturnBytes, &holds_brief_lock) != 0) return false;
  sigset_t dispatched;
  sigemptyset(&dispatched);
  sigaddset(&dispatched, SIGSYS);
  return ::pthread_sigmask(SIG_UNBLOCK, &dispatched, nullptr) == 0;  // our threads block every signal
}
#else
inline bool ask() { return false; }
#endif

// From here on all threads are watched that lock a mutex, the caller's too. false: they cannot be.
inline bool start() {
#if FEEDLINE_WATCH_LOCKS
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  if (::sigaction(SIGSYS, &action, nullptr) != 0 || !ask()) return false;
  is_on = true;
  for (auto& count : calls) count = 0;
  allocations = 0;
#endif
  return is_on;
}

inline void look_at_this_thread() {
  if (is_on.load(std::memory_order_relaxed) && !asked) ask();
}

// "number: times" of the system calls that were seen; empty: none.
inline std::string seen() {
  std::string text;
  for (std::size_t number = 0; number < calls.size(); ++number)
    if (const std::uint64_t times = calls[number]; times > 0)
      text += (text.empty() ? "" : ", ") + std::to_string(number) + ": " + std::to_string(times);
  return text;
}

}  // namespace feedline::pipeline::lock_watch
