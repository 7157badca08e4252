// SPDX-License-Identifier: Apache-2.0

// A sampler that runs out of memory must not crash its process. operator new of this test program fails in the
// sampler's thread, which it identifies by name, when a test requests it.

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include "feedline/observe.h"

#ifndef __SANITIZE_THREAD__  // which replaces operator new

namespace {

std::atomic<bool> sampler_gets_none{false};

bool is_refused() {
  if (!sampler_gets_none.load(std::memory_order_relaxed)) return false;
  char name[16] = {};
  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 && std::strcmp(name, "feedline-sample") == 0;
}

}  // namespace

void* operator new(std::size_t bytes) {
  void* const memory = is_refused() ? nullptr : std::malloc(std::max<std::size_t>(bytes, 1));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace feedline::observe {
namespace {

TEST(HostSampler, WhereItRunsOutOfMemoryItsRecordSaysSo) {
  auto sampler = HostSampler::start({.pid = ::getpid(), .period_ns = 1'000'000, .gpu_library = ""});
  ASSERT_TRUE(sampler);
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  while (sampler->record().host.size() < 3) pause();
  sampler_gets_none = true;
  const auto says_so = [](const HostRecord& record) {
    return std::ranges::any_of(record.unseen, [](const std::string& sentence) {
      return sentence.starts_with("the sampler failed: out of memory");
    });
  };
  while (!says_so(sampler->record())) pause();
  sampler_gets_none = false;
  sampler->stop();
  const HostRecord record = sampler->record();
  EXPECT_TRUE(says_so(record));
  EXPECT_GE(record.host.size(), 3u) << "earlier samples are kept";
}

}  // namespace
}  // namespace feedline::observe

#endif  // __SANITIZE_THREAD__
