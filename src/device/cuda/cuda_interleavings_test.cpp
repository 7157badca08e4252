// SPDX-License-Identifier: Apache-2.0

// A training loop takes batches, retains some, computes on several streams and releases them; threads fill batches; a
// GPU works in any order that the streams allow. The test runs 10,000 random interleavings, each with a different seed.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "base/rounds.h"
#include "device/cuda/fake_driver.h"

namespace feedline::device::cuda {
namespace {

constexpr std::size_t kBytes = 4096;

struct Batch {
  Begun begun;
  int value = 0;
  std::vector<void*> streams = {};  // that have it
};

// One interleaving. The fake driver checks the data that the streams' kernels read.
class Interleaving {
 public:
  Interleaving(const FakeDriver& fake, std::uint64_t seed) : fake_(fake), random_(seed), device_(*cuda_device(0)) {
    for (void*& stream : streams_) stream = fake_.stream(0);
    EXPECT_TRUE(device_->allocator()->prepare(kBytes, seed % 3));
  }

  void run() {
    for (int turn = 0; turn < 24; ++turn) act(random_() % 8);
    if (random_() % 2 == 0) device_.reset();  // the loop breaks out, or runs to its end
    while (!held_.empty()) let_go();
  }

 private:
  void act(std::uint64_t what) {
    switch (what) {
      case 0:
      case 1:
        return fill();
      case 2:
      case 3:
        return take();
      case 4:
        return let_go();
      case 5:
        EXPECT_TRUE(held_.empty() || random_() % 4 != 0 || held_.front().begun.ready->wait());
        if (!ahead_.empty() && random_() % 8 == 0) ahead_.pop_back();  // of an abandoned epoch
        return;
      default:
        fake_.step(random_());
    }
  }
  void fill() {
    if (ahead_.size() >= 3) return;
    const int value = static_cast<int>(next_++ % 251);
    auto begun = device_->begin(filled(*device_, kBytes, value));
    ASSERT_TRUE(begun) << begun.error().message();
    ahead_.push_back({std::move(*begun), value});
  }
  void take() {
    if (ahead_.empty()) return;
    Batch batch = std::move(ahead_.front());
    ahead_.pop_front();
    for (std::uint64_t i = 0, uses = 1 + random_() % 2; i < uses; ++i) {
      void* const stream = streams_[random_() % 3];
      ASSERT_TRUE(batch.begun.ready->let_wait(reinterpret_cast<std::uintptr_t>(stream)));
      fake_.expect_all(stream, batch.begun, batch.value);
      batch.streams.push_back(stream);
    }
    held_.push_back(std::move(batch));
  }
  // Releases a batch, often just after launching a kernel.
  void let_go() {
    if (held_.empty()) return;
    const auto batch = held_.begin() + static_cast<std::ptrdiff_t>(random_() % held_.size());
    if (random_() % 2 == 0)
      fake_.expect_all(batch->streams[random_() % batch->streams.size()], batch->begun, batch->value);
    held_.erase(batch);
  }

  const FakeDriver& fake_;
  std::mt19937_64 random_;
  std::shared_ptr<Device> device_;
  void* streams_[3] = {};
  std::deque<Batch> ahead_, held_;
  std::uint64_t next_ = 1;
};

TEST(CudaInterleavings, TenThousandAreSound) {
  const FakeDriver fake;
  for (int seed = 0; seed < base::rounds(10'000); ++seed) {
    fake.hold(1);
    Interleaving(fake, static_cast<std::uint64_t>(seed)).run();
    ASSERT_EQ(fake.violations(), 0) << "seed " << seed << ": " << fake.words();
    fake.finish();
    for (const char* what : {"pinned", "memory", "streams", "events", "contexts", "pending"})
      ASSERT_EQ(fake.count(what), 0) << "seed " << seed << ": " << what;
    fake.reset(2, kFakeBytes, 12'060);
  }
}

}  // namespace
}  // namespace feedline::device::cuda
