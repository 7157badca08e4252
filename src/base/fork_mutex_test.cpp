// SPDX-License-Identifier: Apache-2.0
#include "base/fork_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace feedline {
namespace {

// Runs `body` in a forked child and kills it after 10 seconds. Returns the child's exit status, or -1 if it was killed.
template <typename Body>
[[maybe_unused]] int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForkMutex, ExcludesOtherThreads) {
  ForkMutex mutex;
  const std::lock_guard lock(mutex);
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
}

#if !defined(__SANITIZE_THREAD__)  // which does not see that the child's mutex is a new one
TEST(ForkMutex, AChildIsNotLockedOutByAThreadOfItsParent) {
  ForkMutex mutex;
  mutex.lock();
  const std::uint32_t before = fork_generation();
  EXPECT_EQ(in_child([&] {
              if (fork_generation() != before + 1) return 2;
              int sum = 0;
              std::vector<std::thread> threads;  // that find the mutex locked at the same time
              for (int i = 0; i < 4; ++i)
                threads.emplace_back([&] {
                  for (int n = 0; n < 1000; ++n) {
                    const std::lock_guard lock(mutex);
                    ++sum;
                  }
                });
              for (std::thread& thread : threads) thread.join();
              return sum == 4000 ? 0 : 3;
            }),
            0);
  EXPECT_EQ(fork_generation(), before);
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()) << "the parent's stays locked"; }).join();
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}
#endif

}  // namespace
}  // namespace feedline
