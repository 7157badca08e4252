// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <new>
#include <optional>
#include <stdexcept>

#include "base/check.h"
#include "base/guarded.h"

namespace feedline::base {
namespace {

std::optional<Error> failure_of(const Thread::Body& body) {
  std::optional<Error> failure;
  {
    const auto thread = Thread::start("test", body, [&](Error error) { failure = std::move(error); });
    EXPECT_TRUE(thread);
  }  // joins
  return failure;
}

TEST(Thread, WhatItsBodyThrowsIsToldAndTheProcessLives) {
  const auto no_memory = failure_of([] { throw std::bad_alloc(); });
  ASSERT_TRUE(no_memory);
  EXPECT_EQ(no_memory->code, ErrorCode::kStorage);
  EXPECT_EQ(no_memory->system_errno, ENOMEM);
  EXPECT_EQ(no_memory->message(), "out of memory: Cannot allocate memory");

  const auto broken = failure_of([] { FEEDLINE_CHECK(1 == 2); });
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->code, ErrorCode::kInternal);
  EXPECT_TRUE(broken->what.starts_with("internal error: 1 == 2 does not hold")) << broken->what;

  const auto unknown = failure_of([] { throw 42; });
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->what, "internal error: an exception of an unknown type");
}

TEST(Thread, ABodyThatEndsTellsNothing) {
  EXPECT_FALSE(failure_of([] {}));
}

// Python up to 3.13 ends a thread with pthread_exit() if the thread requests the GIL while the interpreter exits.
TEST(Thread, AForcedEndIsToldAndLetThrough) {
  EXPECT_TRUE(failure_of([] { pthread_exit(nullptr); }));
}

TEST(Thread, SignalsAreNotItsAndTheMakersMaskStays) {
  sigset_t before, after, in_thread;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  EXPECT_FALSE(failure_of([&] { pthread_sigmask(SIG_SETMASK, nullptr, &in_thread); }));
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&in_thread, SIGTERM), 1);
  EXPECT_EQ(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

TEST(Guarded, WhatIsThrownComesOutAsAnError) {
  const auto thrown = guarded([]() -> Result<int> { throw std::runtime_error("why"); });
  ASSERT_FALSE(thrown);
  EXPECT_EQ(thrown.error().what, "internal error: why");
  EXPECT_EQ(guarded([]() -> Result<int> { return 3; }), 3);
}

}  // namespace
}  // namespace feedline::base
