// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: makes a fake driver call fail at each of its first uses, once per run, and checks the state after every
// failure.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/cuda/fake_driver.h"

namespace feedline::device::cuda {

struct FailingCall {
  std::string name;
  int code;                       // status to fail with
  int most_uses;                  // number of uses to try
  bool holds;                     // the GPU does nothing until a test releases it
  bool loses;                     // the object it should free leaks, because nothing else would free it
  std::vector<std::string> says;  // parts of the message
};

// run(fake): performs a sequence of engine calls, to the end or to the first error. Returns how many runs failed.
// Checks that each error names the call, that nothing leaks and no rule is broken, and that the next run succeeds.
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
    EXPECT_TRUE(run(fake)) << "the next attempt, after " << call.name << " " << nth;
    fake.finish();
    if (!hit) break;
  }
  return failed;
}

}  // namespace feedline::device::cuda
