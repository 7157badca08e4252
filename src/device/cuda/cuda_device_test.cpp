// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "base/machine_fixture.h"
#include "base/test_conditions.h"
#include "device/cuda/fake_driver.h"
#include "device/cuda/pinned_allocator.h"

namespace feedline::device::cuda {
namespace {

constexpr std::size_t kBytes = 8192;

class CudaDevice : public testing::Test {
 protected:
  CudaDevice() { fake_.hold(1); }
  void TearDown() override {
    held_.clear();
    device_.reset();
    fake_.expect_nothing_left();
  }
  void open(int index = 0) {
    auto made = cuda_device(index);
    ASSERT_TRUE(made) << made.error().message();
    device_ = std::move(*made);
    consumer_ = fake_.stream(index);
  }
  Begun begin(int value) {
    auto begun = device_->begin(filled(*device_, kBytes, value));
    EXPECT_TRUE(begun) << begun.error().message();
    return begun ? std::move(*begun) : Begun{};
  }
  // Acts as a training loop: its stream waits for the batch, and a kernel on that stream reads the whole batch.
  void use(const Begun& begun, int value) { use_on(consumer_, begun, value); }
  void use_on(void* stream, const Begun& begun, int value) {
    ASSERT_TRUE(begun.ready->let_wait(reinterpret_cast<std::uintptr_t>(stream)));
    fake_.expect_all(stream, begun, value);
  }
  // Runs all pending work, the last stream first, which is the most difficult order.
  void run_all() const {
    while (fake_.step(~std::uint64_t{0}) != 0) {
    }
  }

  FakeDriver fake_;
  std::shared_ptr<Device> device_;
  void* consumer_ = nullptr;
  std::deque<Begun> held_;
};

TEST_F(CudaDevice, CopiesAnyNumberAheadAndWaitsForNone) {
  open();
  for (int i = 0; i < 5; ++i) held_.push_back(begin(i));
  EXPECT_EQ(fake_.count("waits"), 0);
  for (const Begun& begun : held_) EXPECT_FALSE(begun.ready->is_ready());
  while (!held_[0].ready->is_ready()) ASSERT_EQ(fake_.step(0), 1);
  EXPECT_FALSE(held_[1].ready->is_ready());
  EXPECT_EQ(fake_.content(held_[0])[kBytes - 1], std::byte{0});
  run_all();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(fake_.content(held_[static_cast<std::size_t>(i)])[0], std::byte(i));
  EXPECT_EQ(fake_.count("waits"), 0);
}

TEST_F(CudaDevice, FillsMemoryAgainOnlyOnceItsCopyIsDone) {
  open();
  constexpr std::size_t kLarge = PinnedAllocator::kSlab;
  ASSERT_TRUE(device_->allocator()->prepare(kLarge, 1));
  auto first = filled(*device_, kLarge, 1);
  const std::byte* const block = first->data();
  held_.push_back(*device_->begin(std::move(first)));
  auto second = filled(*device_, kLarge, 2);
  EXPECT_NE(second->data(), block) << "its copy is in flight";
  run_all();
  auto third = filled(*device_, kLarge, 3);
  EXPECT_EQ(third->data(), block) << "no kernel reads it any more, and pages are not locked again";
  EXPECT_EQ(fake_.calls("cuMemHostAlloc"), 2);
}

TEST_F(CudaDevice, StreamsWaitAndNotTheHost) {
  open();
  held_.push_back(begin(7));
  use(held_[0], 7);
  run_all();  // the training loop's stream first
  EXPECT_EQ(fake_.count("waits"), 0);
  EXPECT_EQ(fake_.violations(), 0) << fake_.words();
}

// Checks that the fake driver detects errors.
TEST_F(CudaDevice, AKernelThatDoesNotWaitFindsNothing) {
  open();
  held_.push_back(begin(177));
  fake_.expect_all(consumer_, held_[0], 177);
  run_all();
  EXPECT_EQ(fake_.violations(), 1);
  held_.clear();
  device_.reset();
  fake_.finish();
  fake_.reset(2, kFakeBytes, 12'060);
}

// The training loop runs ahead of its GPU: kernels still read memory that the loop has released.
TEST_F(CudaDevice, MemoryIsWrittenAgainOnlyOnceNoKernelReadsIt) {
  open();
  std::set<const std::byte*> blocks;
  for (int i = 0; i < 40; ++i) {
    while (held_.size() < 2) held_.push_back(begin(i + static_cast<int>(held_.size())));
    use(held_.front(), i);
    blocks.insert(held_.front().memory->data());
    held_.pop_front();
    if (i % 5 == 4) run_all();
  }
  run_all();
  EXPECT_LT(blocks.size(), 9u) << "blocks are reused";
  EXPECT_EQ(fake_.count("waits"), 0);
  EXPECT_EQ(fake_.violations(), 0) << fake_.words();
}

TEST_F(CudaDevice, KernelsOnOtherStreamsMayReadWhatIsLetGoOf) {
  open();
  void* const side = fake_.stream(0);
  for (int i = 0; i < 20; ++i) {
    Begun begun = begin(i);
    use(begun, i);
    // a side stream, which also waits for the batch, and whose kernels run late
    ASSERT_TRUE(begun.ready->let_wait(reinterpret_cast<std::uintptr_t>(side)));
    fake_.expect_all(side, begun, i);
    begun = {};
    for (int n = 0; n < 3; ++n) fake_.step(0);
  }
  run_all();
  EXPECT_EQ(fake_.violations(), 0) << fake_.words();
}

TEST_F(CudaDevice, BatchesAreKeptAndOutliveTheDevice) {
  open();
  for (int i = 0; i < 30; ++i) held_.push_back(begin(i));
  device_.reset();
  EXPECT_EQ(fake_.count("waits"), 0) << "a loader closes without waiting for its copies";
  EXPECT_EQ(CopyStream::left_behind(), 30u);
  for (int i = 29; i >= 0; --i) {
    use(held_.back(), i);
    run_all();
    held_.pop_back();
  }
}

TEST_F(CudaDevice, ABatchThatNobodyWantsIsCopiedAllTheSame) {
  open();
  for (int i = 0; i < 3; ++i) begin(i);  // released at once: an abandoned epoch
  held_.push_back(begin(9));
  use(held_.back(), 9);
  run_all();
}

TEST_F(CudaDevice, GrowsNoMoreAfterTheFirstBatches) {
  fake_.hold(0);
  open();
  for (int i = 0; i < 1000; ++i) {
    held_.push_back(begin(i % 200));
    if (held_.size() < 3) continue;
    use(held_.front(), (i - 2) % 200);
    held_.pop_front();
    if (i == 20) fake_.fail("cuMemAlloc_v2", 1, kOutOfMemory);  // further allocations fail
    EXPECT_LE(fake_.count("memory"), 6);
  }
  EXPECT_EQ(fake_.count("waits"), 0);
  EXPECT_LE(fake_.count("events"), 8);
  fake_.fail(nullptr, 0, 0);
}

// Acts as a consumer that passes stream=-1, or that waits itself.
TEST_F(CudaDevice, GrowsNoMoreWhereNobodySaysThatABatchIsTaken) {
  fake_.hold(0);
  open();
  for (int i = 0; i < 300; ++i) {
    const Begun begun = begin(i % 200);
    ASSERT_TRUE(begun.ready->wait());
  }
  EXPECT_LE(fake_.count("memory"), 20);
}

TEST_F(CudaDevice, AStreamThatIsCapturedFindsTheBatchThere) {
  open();
  for (int i = 0; i < 3; ++i) use(begin(i), i);  // something to mark
  held_.push_back(begin(5));
  fake_.capture(consumer_, 1);
  ASSERT_TRUE(held_[0].ready->let_wait(reinterpret_cast<std::uintptr_t>(consumer_)));
  EXPECT_TRUE(held_[0].ready->is_ready()) << "the host has waited: a graph has no edge out of it";
  held_.push_back(begin(6));  // by another thread in the meantime
  fake_.capture(consumer_, 0);
  EXPECT_EQ(fake_.violations(), 0) << fake_.words();
  use(held_[1], 6);
  run_all();
}

TEST_F(CudaDevice, SeveralGpusGoTheirOwnWays) {
  open(0);
  const auto other = *cuda_device(1);
  void* const other_stream = fake_.stream(1);
  held_.push_back(begin(1));
  auto there = *other->begin(filled(*other, kBytes, 2));
  use(held_[0], 1);
  ASSERT_TRUE(there.ready->let_wait(reinterpret_cast<std::uintptr_t>(other_stream)));
  fake_.expect_all(other_stream, there, 2);
  run_all();
  EXPECT_EQ(device_->location(), (DeviceLocation{DeviceKind::kCuda, 0}));
  EXPECT_EQ(other->location(), (DeviceLocation{DeviceKind::kCuda, 1}));
}

TEST_F(CudaDevice, SaysWhatItDoes) {
  open();
  EXPECT_NE(device_->explain().find("cuda:0 (Fake GPU 0), copied from page-locked memory"), std::string::npos);
}

// Finds the GPU's NUMA node by the PCI name that the driver reports, on a machine with two nodes. The test machine's
// kernel usually has only one of these nodes and rejects the other.
class CudaDeviceOnNodes : public base::MadeMachine {};

TEST_F(CudaDeviceOnNodes, AsksForPagesOnTheGpusNode) {
  write("sys/devices/system/node/online", "0-1\n");
  write("sys/bus/pci/devices/0000:c0:00.0/numa_node", "0\n");
  write("sys/bus/pci/devices/0000:c1:00.0/numa_node", "1\n");
  const FakeDriver fake;
  const auto reported = [](int index) {
    const auto device = *cuda_device(index);
    EXPECT_NE(device->explain().find("once allocated"), std::string::npos) << device->explain();
    EXPECT_NE(filled(*device, kBytes, 1), nullptr);
    EXPECT_EQ(device->explain().find("once allocated"), std::string::npos) << device->explain();
    return device->explain();
  };
  base::test_conditions().machine_root = root_;
  EXPECT_NE(reported(0).find("the GPU's NUMA node 0"), std::string::npos);
  EXPECT_NE(reported(1).find("the GPU's NUMA node 1"), std::string::npos);
  base::test_conditions().machine_root.clear();
  fake.expect_nothing_left();
}

// If the driver cannot record an event for all streams, it is recorded on the stream that takes the next batch.
TEST(EarlyCudaDevice, MemoryIsWrittenAgainOnlyOnceTheTakingStreamHasReadIt) {
  const FakeDriver fake(2, kFakeBytes, 12'020, FEEDLINE_FAKE_CUDA_EARLY);
  fake.hold(1);
  {
    const auto device = *cuda_device(0);
    EXPECT_NE(device->explain().find("another stream"), std::string::npos);
    void* const consumer = fake.stream(0);
    for (int i = 0; i < 40; ++i) {
      const auto begun = *device->begin(filled(*device, kBytes, i));
      ASSERT_TRUE(begun.ready->let_wait(reinterpret_cast<std::uintptr_t>(consumer)));
      fake.expect_all(consumer, begun, i);
      fake.step(static_cast<std::uint64_t>(i));
    }
    EXPECT_EQ(fake.count("waits"), 0);
  }
  fake.expect_nothing_left();
}

}  // namespace
}  // namespace feedline::device::cuda
