// SPDX-License-Identifier: Apache-2.0

// Tests page-locking of memory that the engine does not own, with the fake CUDA driver.

#include "feedline/page_locks.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/machine_fixture.h"
#include "base/test_conditions.h"
#include "device/cuda/driver_calls.h"
#include "device/cuda/fake_driver.h"

namespace feedline::device::cuda {
namespace {

constexpr std::size_t kPage = 4096;

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// Memory that the engine does not own.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : bytes_(count * kPage),
        data_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* page(std::size_t number) const { return static_cast<std::byte*>(data_) + number * kPage; }

 private:
  const std::size_t bytes_;
  void* const data_;
};

class LocksOfOthers : public testing::Test {
 protected:
  void SetUp() override {
    fake_.hold(1);
    fake_.use(0);
    auto opened = PageLocks::open();
    ASSERT_TRUE(opened) << opened.error().message();
    locks_ = std::move(*opened);
  }
  void TearDown() override {
    fake_.capture(reinterpret_cast<void*>(1), 0);
    locks_.reset();
    EXPECT_EQ(fake_.count("made"), 0) << "a context without other users";
    fake_.finish();
    EXPECT_EQ(fake_.violations(), 0) << fake_.words();
    for (const char* what : {"pinned", "events", "contexts"}) EXPECT_EQ(fake_.count(what), 0) << what;
  }
  bool has_gpu(int preferred = 0) {
    const auto has = locks_->has_gpu(preferred);
    EXPECT_TRUE(has) << has.error().message();
    return has && *has;
  }
  const FakeDriver fake_;
  const Pages pages_{4};
  std::unique_ptr<PageLocks> locks_;
};

TEST_F(LocksOfOthers, LieWhereTheyLayAndEndWhereTheyAreEnded) {
  ASSERT_TRUE(has_gpu());
  ASSERT_TRUE(locks_->lock(pages_.page(1), 2 * kPage));
  EXPECT_EQ(fake_.count("pinned_bytes"), 2 * static_cast<long>(kPage));
  EXPECT_FALSE(fake_.is_pinned(pages_.page(0), kPage));
  EXPECT_TRUE(fake_.is_pinned(pages_.page(2), 1));
  EXPECT_FALSE(fake_.is_pinned(pages_.page(3), kPage));
  ASSERT_TRUE(locks_->unlock(pages_.page(1)));
  EXPECT_EQ(fake_.count("pinned"), 0);
}

TEST_F(LocksOfOthers, WithoutAGpuInUseMakeNoContext) {
  fake_.reset(2, kFakeBytes, 12'060);
  EXPECT_FALSE(has_gpu());
  const auto mark = locks_->mark();
  ASSERT_TRUE(mark && *mark);
  EXPECT_TRUE(*(*mark)->is_past());
  EXPECT_EQ(fake_.calls("cuDevicePrimaryCtxRetain"), 0);
  fake_.use(1);
  EXPECT_TRUE(has_gpu(0)) << "a node other than the preferred one is acceptable";
  EXPECT_TRUE(locks_->lock(pages_.page(0), kPage));
  EXPECT_TRUE(locks_->unlock(pages_.page(0)));
}

TEST_F(LocksOfOthers, AMarkWaitsForEveryGpuAndForNothingLater) {
  fake_.use(1);
  void* const streams[] = {fake_.stream(0), fake_.stream(1)};
  ASSERT_TRUE(has_gpu());
  ASSERT_TRUE(locks_->lock(pages_.page(0), 4 * kPage));
  for (int last : {0, 1}) {
    fake_.take(streams[0], pages_.page(0), 100);
    fake_.take(streams[1], pages_.page(1), 100);
    auto mark = locks_->mark();
    ASSERT_TRUE(mark && *mark);
    fake_.finish_device(1 - last);
    EXPECT_FALSE(*(*mark)->is_past());
    fake_.finish_device(last);
    fake_.take(streams[last], pages_.page(2), 100);
    EXPECT_TRUE(*(*mark)->is_past());
    fake_.finish();
  }
  EXPECT_TRUE(locks_->unlock(pages_.page(0)));
}

TEST_F(LocksOfOthers, AreNotMarkedWhileAGraphIsCaptured) {
  ASSERT_TRUE(has_gpu());
  fake_.capture(reinterpret_cast<void*>(1), 1);
  const auto mark = locks_->mark();
  ASSERT_TRUE(mark) << mark.error().message();
  EXPECT_EQ(*mark, nullptr);
  EXPECT_EQ(fake_.violations(), 1) << "which CUDA only answers for existing contexts";
  locks_.reset();
  fake_.reset(2, kFakeBytes, 12'060);
}

TEST_F(LocksOfOthers, SayWhatIsInTheWay) {
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &usual), 0);
  const rlimit low{std::min<rlim_t>(65'536, usual.rlim_max), usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &low), 0);
  ASSERT_TRUE(has_gpu());
  ASSERT_TRUE(locks_->lock(pages_.page(0), kPage));
  const auto twice = locks_->lock(pages_.page(0), kPage);
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &usual), 0);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::kStorage);
  EXPECT_SAYS(twice.error().message(), "cuMemHostRegister: error 712; check nvidia-smi for the cause");
  EXPECT_SAYS(twice.error().message(), "; the machine has ");
  EXPECT_SAYS(twice.error().message(), "; RLIMIT_MEMLOCK is " + std::to_string(low.rlim_cur) + " bytes (ulimit -l");
  ASSERT_TRUE(locks_->unlock(pages_.page(0)));
  const auto none = locks_->unlock(pages_.page(0));
  ASSERT_FALSE(none);
  EXPECT_SAYS(none.error().message(), "cuMemHostUnregister: error 713");
}

TEST_F(LocksOfOthers, EndWithTheDriver) {
  ASSERT_TRUE(has_gpu());
  EXPECT_FALSE(locks_->has_ended());
  fake_.end(1);
  EXPECT_FALSE(locks_->mark());
  EXPECT_TRUE(locks_->has_ended());
  fake_.end(0);
}

TEST_F(LocksOfOthers, AreNothingToAForkedProcess) {
  ASSERT_TRUE(has_gpu());
  ASSERT_TRUE(locks_->lock(pages_.page(0), kPage));
  auto mark = locks_->mark();
  ASSERT_TRUE(mark && *mark);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = !locks_->lock(pages_.page(1), kPage) && !locks_->unlock(pages_.page(0)) && !locks_->mark() &&
                         !(*mark)->is_past() && !locks_->has_ended() && !PageLocks::open();
    mark->reset();
    locks_.reset();
    _exit(refused && fake_.violations() == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(locks_->unlock(pages_.page(0)));
}

class RoomForLocks : public base::MadeMachine {};

TEST_F(RoomForLocks, IsTheMachinesAndTheNumbersAreSaid) {
  write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 100 kB\n");
  base::test_conditions().machine_root = root_;
  EXPECT_TRUE(PageLocks::check_room(100 * 1024));
  const auto refused = PageLocks::check_room(100 * 1024 + 1);
  base::test_conditions().machine_root.clear();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().system_errno, ENOMEM);
  EXPECT_SAYS(refused.error().message(),
              "page-locked memory of 102401 bytes exceeds the 102400 bytes left on the machine and in this process's "
              "control group");
}

TEST(LooksForADriver, AndBeginsNothing) {
  const FakeDriver fake;
  EXPECT_TRUE(PageLocks::check());
  EXPECT_EQ(fake.calls("cuInit"), 0);
}

TEST(LooksForADriver, ThatCanMarkTheWorkOfAllStreams) {
  const FakeDriver fake(2, kFakeBytes, 12'020, FEEDLINE_FAKE_CUDA_EARLY);
  const auto refused = PageLocks::check();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_SAYS(refused.error().message(), "no cuCtxRecordEvent, which was added in CUDA 12.5; update the driver");
  EXPECT_FALSE(PageLocks::open());
}

TEST(LooksForADriver, AndSaysWhereThereIsNoneWithoutSpeakingOfLoaders) {
  setenv("FEEDLINE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  const auto refused = PageLocks::check();
  unsetenv("FEEDLINE_CUDA_DRIVER");
  ASSERT_FALSE(refused);
  EXPECT_SAYS(refused.error().message(), "there is no /nowhere/libcuda.so.1: no NVIDIA driver is installed");
  EXPECT_EQ(refused.error().message().find("device="), std::string::npos);
}

}  // namespace
}  // namespace feedline::device::cuda
