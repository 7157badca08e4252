// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: a call of the fake that fails once, at each of its first uses, and what must hold behind every failure.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/cuda/fake_driver.h"

namespace feedline::device::cuda {

struct FailingCall {
  std::string name;
  int code;                       // that it fails with
  int most_uses;                  // that are tried
  bool holds;                     // the GPU does nothing before it is told to
  bool loses;                     // what it was to give back is lost, as nothing else would free it
  std::vector<std::string> says;  // parts of the message
};

// run(fake): a course of the engine's, whole or an error. How many of the courses failed: each named the call, left
// nothing behind and broke no rule, and the next one was whole.
template <typename Run>
int courses_that_fail(const FailingCall& call, Run run) {
  int failed = 0;
  for (int nth = 1; nth <= call.most_uses; ++nth) {
    const FakeDriver fake;
    if (call.holds) fake.hold(1);
    fake.fail(call.name.c_str(), nth, call.code);
    const long before = fake.calls(call.name.c_str());
    const auto made = run(fake);
    const bool hit = fake.calls(call.name.c_str()) - before >= nth;
    fake.fail(nullptr, 0, 0);
    fake.finish();
    if (!made) {
      ++failed;
      const std::string said = made.error().message();
      for (const std::string& part : call.says) EXPECT_NE(said.find(part), std::string::npos) << said;
    }
    EXPECT_EQ(fake.violations(), 0) << call.name << " " << nth << ": " << fake.words();
    for (const char* what : {"pinned", "memory", "streams", "events", "contexts", "modules", "jpegs"})
      EXPECT_TRUE(call.loses || fake.count(what) == 0)
          << call.name << " " << nth << ": " << what << " " << fake.count(what);
    if (call.loses) fake.reset(2, kFakeBytes, 12'060);
    EXPECT_TRUE(run(fake)) << "the next try, after " << call.name << " " << nth;
    fake.finish();
    if (!hit) break;
  }
  return failed;
}

}  // namespace feedline::device::cuda
