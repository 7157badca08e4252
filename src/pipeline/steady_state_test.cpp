// SPDX-License-Identifier: Apache-2.0

// What a batch costs in locks and allocations once everything is warm must not depend on how many samples it has. Both
// are counted where they happen: this program's malloc and pthread_mutex_lock, of all threads and every library.
// Sanitizers bring their own, so there is nothing to count under them.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <string>

#include "decode/jpeg_fixture.h"
#include "format/tar_writer.h"
#include "pipeline/fake_format.h"
#include "pipeline/pipeline.h"
#include "storage/temporary_folder.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FEEDLINE_WATCH_COSTS 0
#else
#define FEEDLINE_WATCH_COSTS 1
#endif

namespace {
std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> locks{0};
}  // namespace

#if FEEDLINE_WATCH_COSTS
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

__attribute__((visibility("default"))) void* malloc(std::size_t bytes) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void* calloc(std::size_t count, std::size_t bytes) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
__attribute__((visibility("default"))) void* realloc(void* block, std::size_t bytes) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(block, bytes);
}
__attribute__((visibility("default"))) void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Lock = int (*)(pthread_mutex_t*);
  static std::atomic<Lock> real{nullptr};  // no local static with a guard: that may lock by itself
  Lock lock = real.load(std::memory_order_acquire);
  if (lock == nullptr) {
    lock = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    real.store(lock, std::memory_order_release);
  }
  locks.fetch_add(1, std::memory_order_relaxed);
  return lock(mutex);
}
}
#endif

namespace feedline::decode {
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DecoderContract);  // comes with the fixture
}

namespace feedline::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kWarm = 12, kCounted = 96, kAhead = 3;  // batches
constexpr int kThreads = 2;
constexpr int kImages = 512;  // two of the larger batches

struct Cost {
  double locks = 0, allocations = 0;  // of a batch
};

Cost cost_of_a_batch(const std::shared_ptr<const Recipe>& recipe, std::uint64_t batch_size, bool adapts = false) {
  LoaderOptions options{.batch_size = batch_size, .shuffle = true, .num_workers = kThreads};
  // of small batches too no more than three ahead, or what was filled before the counting began would not count
  options.memory_budget = kAhead * plan_pipeline(*recipe, options)->batch_bytes;
  auto plan = plan_pipeline(*recipe, options);
  plan->adapts = adapts;
  Pipeline pipeline(recipe, *plan);
  EXPECT_TRUE(pipeline.begin({}, true));
  std::uint64_t locks_then = 0, allocations_then = 0, epoch = 0;
  for (std::uint64_t i = 0; i < kWarm + kCounted;) {
    if (i == kWarm) locks_then = locks, allocations_then = allocations;
    Batch batch;
    const auto polled = pipeline.poll(10s, batch);
    EXPECT_TRUE(polled) << polled.error().message();
    if (!polled || *polled == Loader::Polled::kPending) break;
    if (*polled == Loader::Polled::kEnd) {
      EXPECT_TRUE(pipeline.begin({.epoch = ++epoch}, true));
      continue;
    }
    ++i;
  }
  return {static_cast<double>(locks - locks_then) / kCounted,
          static_cast<double>(allocations - allocations_then) / kCounted};
}

void expect_no_lock_per_sample(const Cost& cost) {
  // once for each thread, and what the consumer, the allocator and waking up take: under ten, and 30 where other
  // programs take the CPUs; a lock for each of 256 rows would be 260
  constexpr double kMostLocks = 64;
  EXPECT_GT(cost.locks, 1) << "nothing was counted";
  EXPECT_LT(cost.locks, kMostLocks);
}

// by_codec: allocations of a foreign library for every image, which gives no say in them.
void expect_nothing_per_sample(const std::shared_ptr<const Recipe>& recipe, double by_codec = 0) {
  if (!FEEDLINE_WATCH_COSTS) GTEST_SKIP() << "under a sanitizer, which has a malloc and mutexes of its own";
  constexpr std::uint64_t kSmall = 16, kLarge = 256;
  const Cost small = cost_of_a_batch(recipe, kSmall), large = cost_of_a_batch(recipe, kLarge);
  expect_no_lock_per_sample(small);
  expect_no_lock_per_sample(large);
  EXPECT_GT(small.allocations, 1) << "nothing was counted";
  // a buffer may still grow now and then; and what is filled ahead at the end counts, what was at the beginning may not
  constexpr double kRarely = 0.25, kMostFilled = static_cast<double>(kCounted + kAhead) / kCounted;
  EXPECT_LT((large.allocations - small.allocations) / (kLarge - kSmall), by_codec * kMostFilled + kRarely);
}

std::shared_ptr<const Recipe> recipe_of(std::shared_ptr<const format::Format> format, std::vector<Operation> steps) {
  auto recipe = make_recipe("steady", std::move(format), nullptr, steps, std::nullopt, Layout::kNchw);
  EXPECT_TRUE(recipe) << recipe.error().message();
  return *recipe;
}

// kImages images in class folders.
template <typename Encode>
std::shared_ptr<const format::Format> folder_of(const storage::TemporaryFolder& folder, Encode encode) {
  std::vector<std::vector<std::byte>> encoded;
  for (int i = 0; i < 16; ++i) encoded.push_back(encode(48 + i, 40 + i / 2));
  for (int i = 0; i < kImages; ++i) {
    const auto& bytes = encoded[static_cast<std::size_t>(i) % encoded.size()];
    folder.write((i % 2 == 0 ? "cats/" : "dogs/") + std::to_string(i) + ".jpg",
                 {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  auto format = format::open(folder.path(), {});
  EXPECT_TRUE(format) << format.error().message();
  return *format;
}

constexpr double kOfLibjpeg = 1;  // the pool that jpeg_read_header() begins
constexpr double kOfSpng = 6;     // its context, and zlib's

TEST(SteadyState, JpegsInFoldersCostNoLockOrAllocation) {
  const storage::TemporaryFolder folder;
  const auto format =
      folder_of(folder, [](int width, int height) { return decode::encode({.width = width, .height = height}); });
  expect_nothing_per_sample(recipe_of(format, {op::RandomResizedCrop{{24, 24}}, op::RandomHorizontalFlip{},
                                               op::Normalize{{0.5, 0.5, 0.5}, {0.2, 0.2, 0.2}}}),
                            kOfLibjpeg);
}

TEST(SteadyState, ShardsCostNoLock) {
  if (!FEEDLINE_WATCH_COSTS) GTEST_SKIP() << "under a sanitizer, which has mutexes of its own";
  const storage::TemporaryFolder folder;
  const auto jpeg = decode::encode({.width = 48, .height = 40});
  for (int shard = 0; shard < 2; ++shard) {
    format::TarWriter tar;
    for (int i = 0; i < kImages / 2; ++i)
      tar.add(std::to_string(i) + ".jpg", {reinterpret_cast<const char*>(jpeg.data()), jpeg.size()})
          .add(std::to_string(i) + ".cls", "3");
    folder.write(std::to_string(shard) + ".tar", tar.finish());
  }
  const auto format = format::open(folder.path("{0..1}.tar"), {.index_directory = folder.path()});
  ASSERT_TRUE(format) << format.error().message();
  expect_no_lock_per_sample(cost_of_a_batch(recipe_of(*format, {op::CenterCrop{{24, 24}}}), 256));
}

TEST(SteadyState, PngsInFoldersCostNoLockOrAllocation) {
  const storage::TemporaryFolder folder;
  const auto format = folder_of(folder, [](int width, int height) {
    return plain_png(100, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height));
  });
  expect_nothing_per_sample(recipe_of(format, {op::CenterCrop{{24, 24}}}), kOfSpng);
}

// Rows so long that a thread is given one at a time, and short ones, of which it is given many.
TEST(SteadyState, ArraysCostNoLockOrAllocation) {
  for (const std::int64_t row : {20'000, 4}) {
    constexpr std::uint64_t kRows = kImages;
    const auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(row) * kRows, 1.0f);
    const NamedArray array{"x",
                           reinterpret_cast<const std::byte*>(values->data()),
                           kRows,
                           static_cast<std::ptrdiff_t>(row * 4),
                           {DType::kFloat32, {row}},
                           values};
    const auto format = array_source({array});
    ASSERT_TRUE(format) << format.error().message();
    expect_nothing_per_sample(recipe_of(*format, {}));
  }
}

// A number of threads that changes costs a few at each change, and between them nothing.
TEST(SteadyState, AControllerCostsNoLock) {
  if (!FEEDLINE_WATCH_COSTS) GTEST_SKIP() << "under a sanitizer, which has mutexes of its own";
  const storage::TemporaryFolder folder;
  const auto recipe = recipe_of(
      folder_of(folder, [](int width, int height) { return decode::encode({.width = width, .height = height}); }),
      {op::CenterCrop{{24, 24}}});
  for (const char* mode : {"", "random"}) {
    ::setenv("FEEDLINE_CONTROLLER", mode, 1);
    expect_no_lock_per_sample(cost_of_a_batch(recipe, 256, true));
  }
  ::unsetenv("FEEDLINE_CONTROLLER");
}

}  // namespace
}  // namespace feedline::pipeline
