// SPDX-License-Identifier: Apache-2.0

// Makes each call to CUDA's driver fail once. The error must be returned by the function that needed the call and name
// the call, nothing may leak, and the next attempt must succeed.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <set>

#include "device/cuda/driver_calls.h"
#include "device/cuda/failing_calls_fixture.h"
#include "device/cuda/fake_driver.h"
#include "device/cuda/kernels/pixel_job.h"
#include "device/cuda/pinned_allocator.h"
#include "feedline/page_locks.h"

namespace feedline::device::cuda {
namespace {

constexpr std::size_t kBytes = 8192;
constexpr int kBatches = 8;

// The output is uint8, so that all bytes have one value.
const Finish kFinish{kBytes, {{.rows = 2, .size = {64, 64}, .channels = 1, .dtype = DType::kUint8, .tables = 0}}};

// A batch made from an image cached on the GPU.
Result<Begun> make_of_kept(Device& device, const std::shared_ptr<ResidentImages>& images, int value) {
  const std::vector<std::byte> pixels(64 * 64, static_cast<std::byte>(value));
  FEEDLINE_TRY(const std::uint64_t address, images->store(pixels));
  FEEDLINE_TRY(auto lease, memory::Lease::take(device.allocator(), kBytes));
  std::memset(lease->data(), value, kBytes);
  // one channel is grey already
  const CachedRow row{
      .pixels = address, .stride = 64, .width = 64, .height = 64, .colours = 1, .colour = {{ColourChange::kGrey, 0}}};
  for (std::size_t i = 0; i < 2; ++i) std::memcpy(lease->data() + i * 128, &row, sizeof row);
  // only the rows matter; the rest is filled with `value` and not checked
  const Finish finish{.made_bytes = kBytes,
                      .images = {{.from_resident = Finish::Images::FromResident{0, 128, 2},
                                  .rows = 2,
                                  .size = {64, 64},
                                  .channels = 1,
                                  .dtype = DType::kUint8}},
                      .scratch_bytes = kBytes,
                      .resident = images};
  return device.begin_making(std::move(lease), finish);
}

// Locks memory in the same way as the torch loader. After any failure, except that of the unlocking call, no memory
// stays locked.
Result<void> lock_others() {
  alignas(4096) static std::array<std::byte, 2 * 4096> memory;
  FEEDLINE_TRY(const auto locks, PageLocks::open());
  FEEDLINE_TRY(const bool has_gpu, locks->has_gpu(0));
  if (!has_gpu) return internal_error("no GPU is in use");
  FEEDLINE_CHECK_OK(locks->lock(memory.data(), memory.size()));
  const auto is_past = [&]() -> Result<bool> {
    FEEDLINE_TRY(const auto mark, locks->mark());
    return mark->is_past();
  }();
  FEEDLINE_CHECK_OK(locks->unlock(memory.data()));
  FEEDLINE_TRY(const bool past, is_past);
  return past ? Result<void>() : internal_error("an idle GPU has pending work");
}

// Uses a device in the same way as a loader, until the end or the first error.
Result<void> run(const FakeDriver& fake) {
  FEEDLINE_TRY(auto device, cuda_device(0));
  if (!device->makes_elements()) return config_error(device->explain());
  FEEDLINE_CHECK_OK(lock_others());
  FEEDLINE_CHECK_OK(device->allocator()->prepare(kBytes, 2));
  FEEDLINE_TRY(const auto images, device->make_resident_images(kBatches * 4096));
  void* const consumer = fake.stream(0);
  std::vector<Begun> held;
  for (int i = 0; i < kBatches; ++i) {
    FEEDLINE_TRY(auto lease, memory::Lease::take(device->allocator(), kBytes));
    std::memset(lease->data(), i, kBytes);
    FEEDLINE_TRY(auto begun, device->begin(std::move(lease)));
    FEEDLINE_TRY(auto other, memory::Lease::take(device->allocator(), kBytes));
    std::memset(other->data(), i, kBytes);
    FEEDLINE_TRY(auto made, device->begin_making(std::move(other), kFinish));
    FEEDLINE_CHECK_OK(made.ready->let_wait(reinterpret_cast<std::uintptr_t>(consumer)));
    fake.expect_all(consumer, made, i);
    FEEDLINE_TRY(auto from_resident, make_of_kept(*device, images, i));
    FEEDLINE_CHECK_OK(from_resident.ready->let_wait(reinterpret_cast<std::uintptr_t>(consumer)));
    fake.expect(consumer, reinterpret_cast<std::uint64_t>(from_resident.memory->data()), kBytes, i);
    FEEDLINE_TRY(auto late, memory::Lease::take(device->variable_allocator(), 100));
    FEEDLINE_CHECK_OK(begun.ready->let_wait(reinterpret_cast<std::uintptr_t>(consumer)));
    fake.expect_all(consumer, begun, i);
    fake.step(0);
    held.push_back(std::move(begun));
    if (held.size() > 2) held.erase(held.begin());
  }
  FEEDLINE_CHECK_OK(held.back().ready->wait());
  return {};
}

// Calls whose failure has no visible effect: names and numbers for messages, and calls that free objects.
const std::set<std::string> kSilent = {"cuDeviceGetName",     "cuDeviceGetPCIBusId",
                                       "cuGetErrorName",      "cuGetErrorString",
                                       "cuMemGetInfo_v2",     "cuMemFreeHost",
                                       "cuMemFree_v2",        "cuStreamDestroy_v2",
                                       "cuEventDestroy_v2",   "cuDevicePrimaryCtxRelease_v2",
                                       "cuStreamSynchronize", "cuModuleUnload",
                                       "cuModuleLoadData"};  // has a fallback, PTX
// Calls whose failure leaks, because nothing else would free the object.
const std::set<std::string> kFrees = {"cuMemFreeHost",      "cuMemHostUnregister", "cuMemFree_v2",
                                      "cuStreamDestroy_v2", "cuEventDestroy_v2",   "cuDevicePrimaryCtxRelease_v2",
                                      "cuModuleUnload"};

std::string without_version(std::string call) { return call.ends_with("_v2") ? call.substr(0, call.size() - 3) : call; }

class EveryCallFails : public testing::TestWithParam<const char*> {};

TEST_P(EveryCallFails, OnceAndIsNamed) {
  const std::string call = GetParam();
  const bool loses = kFrees.contains(call) || call == "cuCtxPushCurrent_v2" || call == "cuCtxPopCurrent_v2" ||
                     call == "cuThreadExchangeStreamCaptureMode";
  // "; ": followed by advice
  const FailingCall failing{.name = call,
                            .code = kLaunchFailed,
                            .most_uses = 40,
                            .holds = true,
                            .loses = loses,
                            .says = {without_version(call) + ":", "CUDA_ERROR_LAUNCH_FAILED", "; "}};
  EXPECT_EQ(courses_that_fail(failing, run) > 0, !kSilent.contains(call)) << call;
}

#define FEEDLINE_NAME(member, name, arguments) name,
INSTANTIATE_TEST_SUITE_P(Cuda, EveryCallFails, testing::Values(FEEDLINE_CUDA_CALLS(FEEDLINE_NAME) "cuCtxRecordEvent"),
                         [](const auto& call) { return std::string(call.param); });
#undef FEEDLINE_NAME

std::string refusal(int index) {
  const auto made = cuda_device(index);
  EXPECT_FALSE(made);
  if (made) return "";
  EXPECT_EQ(made.error().code, ErrorCode::kConfig);
  return made.error().message();
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(CudaDeviceRefuses, WhereThereIsNoDriver) {
  setenv("FEEDLINE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  const std::string said = refusal(0);
  unsetenv("FEEDLINE_CUDA_DRIVER");
  EXPECT_SAYS(said, "there is no /nowhere/libcuda.so.1");
  EXPECT_SAYS(said, "omit device=");
}

TEST(CudaDeviceRefuses, WhereTheDriverHasNoDevice) {
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  const FakeDriver fake(0);
  const std::string said = refusal(0);
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_SAYS(said, "reports no GPU to this process");
  EXPECT_SAYS(said, "CUDA_VISIBLE_DEVICES (it is \"7\")");
}

TEST(CudaDeviceRefuses, ADriverThatIsTooEarly) {
  const FakeDriver fake(2, kFakeBytes, 10'020);
  const std::string said = refusal(0);
  EXPECT_SAYS(said, "the driver supports CUDA 10.2, but CUDA 11.0 is needed; update it");
}

TEST(CudaDeviceRefuses, ALibraryThatIsNone) {
  setenv("FEEDLINE_CUDA_DRIVER", "libm.so.6", 1);
  const std::string said = refusal(0);
  unsetenv("FEEDLINE_CUDA_DRIVER");
  EXPECT_SAYS(said, "libm.so.6 has no cu");
}

TEST(CudaDeviceRefuses, AnIndexOutOfRange) {
  const FakeDriver fake;
  EXPECT_SAYS(refusal(2), "there is no cuda:2: the devices are cuda:0 to cuda:1");
  EXPECT_SAYS(refusal(-1), "there is no cuda:-1");
  setenv("CUDA_VISIBLE_DEVICES", "1,0,3", 1);
  EXPECT_SAYS(refusal(2), "is \"1,0,3\" now and was \"\" when CUDA started, which reads it once");
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(CudaDeviceRefuses, TheSecondPartOfAGpu) {
  setenv("FAKE_CUDA_MIG", "1", 1);
  const FakeDriver fake(1);
  const std::string said = refusal(1);
  unsetenv("FAKE_CUDA_MIG");
  EXPECT_SAYS(said, "the only device is cuda:0");
  EXPECT_SAYS(said, "MIG");
  EXPECT_SAYS(said, "CUDA_VISIBLE_DEVICES=MIG-");
}

// In a forked child, objects created by the parent make no driver calls.
TEST(CudaDeviceRefuses, AProcessThatWasForked) {
  const FakeDriver fake;
  auto device = *cuda_device(0);
  auto begun = *device->begin(filled(*device, kBytes, 1));
  const pid_t child = fork();
  if (child == 0) {
    const auto lease = memory::Lease::take(device->allocator(), 2 * kBytes);
    const bool refuses =
        !lease && lease.error().what.find("spawn") != std::string::npos && !begun.ready->let_wait(1) && !cuda_device(0);
    begun = {};
    device.reset();
    _exit(refuses && fake.violations() == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(CudaDeviceFails, WithItsNumbersWhereTheGpuIsFull) {
  const FakeDriver fake(2, 5 * kBytes);
  {
    const auto device = *cuda_device(0);
    std::vector<Begun> held;
    for (int i = 0; i < 5; ++i) held.push_back(*device->begin(filled(*device, kBytes, i)));
    const auto refused = device->begin(filled(*device, kBytes, 9));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kStorage);
    EXPECT_EQ(refused.error().system_errno, ENOMEM);
    const std::string said = refused.error().message();
    EXPECT_SAYS(said, "Fake GPU 0 (cuda:0): 8192 bytes for a batch: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_SAYS(said, "0 of its 40960 bytes are free; this loader's batches use 40960");
    EXPECT_SAYS(said, "lower batch_size");
    held.pop_back();  // no batch was taken since, but its memory can be reused
    EXPECT_TRUE(device->begin(filled(*device, kBytes, 9)));
    held.clear();
    EXPECT_TRUE(device->begin(filled(*device, 3 * kBytes, 9))) << "blocks of other sizes are freed for it";
  }
  fake.expect_nothing_left();
}

TEST(CudaDeviceFails, WithTheGpuThatIsLost) {
  const FakeDriver fake;
  fake.hold(1);
  auto device = *cuda_device(0);
  auto begun = *device->begin(filled(*device, kBytes, 1));
  fake.lose(0, kLaunchFailed);
  EXPECT_TRUE(begun.ready->is_ready()) << "its transfer has ended";
  const auto waited = begun.ready->wait();
  ASSERT_FALSE(waited);
  EXPECT_SAYS(waited.error().message(), "restart it from its last checkpoint");
  EXPECT_FALSE(begun.ready->let_wait(1));
  EXPECT_FALSE(device->begin(filled(*device, kBytes, 2)));
  begun = {};
  device.reset();
  EXPECT_TRUE(cuda_device(1)) << "the other one continues";
  EXPECT_EQ(CopyStream::left_behind(), 1u) << "it is unknown what it still reads";
  fake.lose(0, 0);
  fake.finish();
}

TEST(CudaDeviceFails, WhileTheProcessEndsWithoutACrash) {
  const FakeDriver fake;
  auto device = *cuda_device(0);
  auto begun = *device->begin(filled(*device, kBytes, 1));
  fake.end(1);
  const auto waited = begun.ready->let_wait(1);
  ASSERT_FALSE(waited);
  EXPECT_SAYS(waited.error().message(), "CUDA_ERROR_DEINITIALIZED");
  device.reset();
  fake.end(0);
  fake.finish();
}

class PinnedMemory : public testing::Test {
 protected:
  std::shared_ptr<PinnedAllocator> make(std::function<std::uint64_t()> room) {
    return std::make_shared<PinnedAllocator>(
        *Context::open(*Driver::open(), 0), [] {}, std::move(room));
  }
  FakeDriver fake_;
};

TEST_F(PinnedMemory, IsLockedOnceAndBeforehand) {
  for (const std::size_t bytes : {std::size_t{320}, kBytes, PinnedAllocator::kSlab + 1}) {
    const auto pinned = make([] { return std::uint64_t{1} << 30; });
    const long before = fake_.calls("cuMemHostAlloc");
    ASSERT_TRUE(pinned->prepare(bytes, 3));
    const std::uint64_t locked = pinned->locked_bytes();
    EXPECT_GE(locked, 3 * bytes);
    EXPECT_LT(locked, 3 * bytes + 3 * 4096);
    EXPECT_EQ(static_cast<std::uint64_t>(fake_.count("pinned_bytes")), locked);
    for (int turn = 0; turn < 10; ++turn) {
      std::vector<std::shared_ptr<memory::Lease>> leases;
      for (int i = 0; i < 3; ++i) leases.push_back(*memory::Lease::take(pinned, bytes));
    }
    EXPECT_EQ(fake_.calls("cuMemHostAlloc") - before, bytes < PinnedAllocator::kSlab ? 1 : 3);
    EXPECT_EQ(pinned->locked_bytes(), locked);
  }
  fake_.expect_nothing_left();
}

TEST_F(PinnedMemory, IsRefusedWithTheNumbers) {
  constexpr std::size_t kLarge = std::size_t{2} << 20;
  const auto pinned = make([] { return std::uint64_t{2} * kLarge; });
  const auto refused = pinned->prepare(kLarge, 3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().system_errno, ENOMEM);
  EXPECT_SAYS(refused.error().message(), "page-locked memory for 3 batches of 2097152 bytes exceeds the 4194304 bytes");
  EXPECT_EQ(fake_.count("pinned"), 0);
  fake_.fail("cuMemHostAlloc", 2, kOutOfMemory);
  const auto driver_refused = pinned->prepare(kLarge, 2);
  ASSERT_FALSE(driver_refused);
  EXPECT_SAYS(driver_refused.error().message(), "cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(fake_.count("pinned"), 0) << "the memory locked before is freed";
}

// With many block sizes in use, blocks of sizes that are no longer needed are freed.
TEST_F(PinnedMemory, OfManySizesIsBounded) {
  constexpr std::size_t kStep = PinnedAllocator::kSlab / 8;
  const auto pinned = make([] { return std::uint64_t{1} << 30; });
  for (std::size_t i = 1; i <= 200; ++i) std::ignore = *memory::Lease::take(pinned, kStep * (1 + i * 7 % 50));
  EXPECT_LE(pinned->locked_bytes(), 2 * kStep * 50 + 8 * PinnedAllocator::kSlab);
}

}  // namespace
}  // namespace feedline::device::cuda
