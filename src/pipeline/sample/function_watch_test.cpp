// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/function_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

namespace feedline::pipeline {
namespace {

// 'R' is running, 'S' is sleeping
char state_of(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t name_end = text.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '?' : text[name_end + 2];
}

// A thread that stays in a call until it is released. The thread spins during the call, so if it sleeps, it is blocked
// in leave().
struct Call {
  FunctionWatch watch;
  std::atomic<pid_t> thread = 0;
  std::atomic<bool> may_return = false, has_left = false;

  static std::shared_ptr<Call> begin(std::thread& thread) {
    auto call = std::make_shared<Call>();
    thread = std::thread([call] {
      EXPECT_TRUE(call->watch.enter());
      call->thread = ::gettid();
      while (!call->may_return) {
      }
      call->watch.leave(10, 1);
      call->has_left = true;
    });
    while (call->thread == 0) std::this_thread::yield();
    return call;
  }
};

TEST(FunctionWatchTest, AThreadThatWasGivenUpNeverComesBack) {
  std::thread thread;
  const auto call = Call::begin(thread);
  call->watch.close();
  EXPECT_TRUE(call->watch.give_up(FunctionWatch::Clock::now()));
  thread.detach();
  call->may_return = true;
  while (!call->has_left && state_of(call->thread) != 'S') std::this_thread::yield();
  EXPECT_FALSE(call->has_left);
  EXPECT_EQ(call->watch.calls(), 1u);
}

TEST(FunctionWatchTest, OneThatReturnsInTimeIsWaitedFor) {
  std::thread thread;
  const auto call = Call::begin(thread);
  call->watch.close();
  call->may_return = true;
  EXPECT_FALSE(call->watch.give_up(FunctionWatch::Clock::now() + std::chrono::hours(1)));
  thread.join();
  EXPECT_TRUE(call->has_left);
  EXPECT_EQ(call->watch.run_ns(), 10u);
  EXPECT_EQ(call->watch.waited_ns(), 1u);
}

TEST(FunctionWatchTest, NoCallBeginsOnceItIsClosed) {
  FunctionWatch watch;
  ASSERT_TRUE(watch.enter());
  watch.leave(0, 0);
  watch.close();
  EXPECT_FALSE(watch.enter());
  EXPECT_FALSE(watch.give_up(FunctionWatch::Clock::now()));
}

}  // namespace
}  // namespace feedline::pipeline
