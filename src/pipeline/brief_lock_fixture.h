// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: records every system call and allocation of a thread that holds a BriefLock.
//
// The kernel intercepts system calls (syscall user dispatch, Linux 5.11): before each system call of a registered
// thread it checks holds_brief_lock, and sends SIGSYS if the byte is 1. The signal handler records the call's number
// and makes the call. This method also detects calls from libraries and raw system calls. A thread registers at its
// next pthread mutex lock. Allocations are counted by interposed functions (see steady_state_test.cpp).

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

#include "base/brief_lock.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FEEDLINE_WATCH_LOCKS 1
#else
#define FEEDLINE_WATCH_LOCKS 0
#endif

namespace feedline::pipeline::lock_watch {

inline std::atomic<bool> is_on = false;  // threads should register
inline thread_local bool asked = false;
inline std::array<std::atomic<std::uint64_t>, 1024> calls{};  // by number, made under the lock
inline std::atomic<std::uint64_t> allocations = 0;            // made under the lock

// Records an allocation that was made under the lock.
inline void note_allocation() {
  if (base::holds_brief_lock != 0) allocations.fetch_add(1, std::memory_order_relaxed);
}

#if FEEDLINE_WATCH_LOCKS
constexpr int kSetDispatch = 59, kDispatchOn = 1;  // PR_SET_SYSCALL_USER_DISPATCH, which older headers lack

// The struct that the kernel uses for signal actions.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

// Ignores clock reads, which need no system call on most machines.
inline bool is_excused(long number, long first_argument) {
  return number == SYS_clock_gettime && first_argument == CLOCK_MONOTONIC;
}

inline void handle(int /*signal*/, siginfo_t* info, void* context) {
  base::holds_brief_lock = 0;  // do not record the handler's own calls
  const int error = errno;
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const long number = info->si_syscall;
  if (!is_excused(number, registers[REG_RDI])) calls[static_cast<std::size_t>(number) % calls.size()].fetch_add(1);
  if (number == SYS_clone || number == SYS_clone3 || number == SYS_vfork) {
    registers[REG_RAX] = -ENOSYS;  // the child would return on this stack
  } else {
    const long result = ::syscall(number, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                  registers[REG_R10], registers[REG_R8], registers[REG_R9]);
    registers[REG_RAX] = result == -1 ? -errno : result;
  }
  errno = error;
  base::holds_brief_lock = 1;
}

// Registers the calling thread. Returns false if the kernel does not support syscall user dispatch.
inline bool ask() {
  asked = true;
  KernelAction action{};
  ::syscall(SYS_rt_sigaction, SIGSYS, nullptr, &action, sizeof action.mask);
  // returning from the handler is a system call too, whose address is only in the kernel's record of the handler
  constexpr std::size_t kReturnBytes = 16;
  if (::prctl(kSetDispatch, kDispatchOn, action.restorer, kReturnBytes, &base::holds_brief_lock) != 0) return false;
  sigset_t dispatched;
  sigemptyset(&dispatched);
  sigaddset(&dispatched, SIGSYS);
  return ::pthread_sigmask(SIG_UNBLOCK, &dispatched, nullptr) == 0;  // the engine's threads block every signal
}
#else
inline bool ask() { return false; }
#endif

// Starts recording for the calling thread and for all threads that lock a mutex afterwards. Returns false if recording
// is not supported.
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

// Returns the recorded system calls as "number: count", or an empty string if there were none.
inline std::string seen() {
  std::string text;
  for (std::size_t number = 0; number < calls.size(); ++number)
    if (const std::uint64_t times = calls[number]; times > 0)
      text += (text.empty() ? "" : ", ") + std::to_string(number) + ": " + std::to_string(times);
  return text;
}

}  // namespace feedline::pipeline::lock_watch
