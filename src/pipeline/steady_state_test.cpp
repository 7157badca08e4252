// SPDX-License-Identifier: Apache-2.0

// After warm-up, the number of locks and allocations per batch must not depend on its number of samples. Locks and
// allocations are counted in all threads and libraries, by interposing malloc and the pthread lock functions.
// Sanitizers replace these functions, so this test counts nothing in sanitizer builds.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <webp/encode.h>

#include <atomic>
#include <string>

#include "base/test_conditions.h"
#include "decode/jpeg/jpeg_fixture.h"
#include "format/combined/joined_format.h"
#include "format/format.h"
#include "format/tar/tar_writer.h"
#include "pipeline/brief_lock_fixture.h"
#include "pipeline/fake_format.h"
#include "pipeline/pipeline.h"
#include "pipeline/sample/view_point.h"
#include "pipeline/variable_size_fixture.h"
#include "storage/temporary_folder.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FEEDLINE_WATCH_COSTS 0
#else
#define FEEDLINE_WATCH_COSTS 1
#endif

namespace {
std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> locks{0};

void count_allocation() {
  allocations.fetch_add(1, std::memory_order_relaxed);
  feedline::pipeline::lock_watch::note_allocation();
}
}  // namespace

#if FEEDLINE_WATCH_COSTS
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

__attribute__((visibility("default"))) void* malloc(std::size_t bytes) noexcept {
  count_allocation();
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void* calloc(std::size_t count, std::size_t bytes) noexcept {
  count_allocation();
  return __libc_calloc(count, bytes);
}
__attribute__((visibility("default"))) void* realloc(void* block, std::size_t bytes) noexcept {
  count_allocation();
  return __libc_realloc(block, bytes);
}
__attribute__((visibility("default"))) void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  count_allocation();
  return __libc_memalign(alignment, bytes);
}
}  // extern "C"

// no guarded local static: the guard may take a lock
template <typename Lock>
Lock real_of(std::atomic<Lock>& known, const char* name) {
  Lock lock = known.load(std::memory_order_acquire);
  if (lock != nullptr) return lock;
  lock = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, name));
  known.store(lock, std::memory_order_release);
  return lock;
}
std::atomic<int (*)(pthread_mutex_t*)> real_mutex_lock{nullptr};
std::atomic<int (*)(pthread_rwlock_t*)> real_read_lock{nullptr};

extern "C" {
__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  locks.fetch_add(1, std::memory_order_relaxed);
  feedline::pipeline::lock_watch::look_at_this_thread();
  return real_of(real_mutex_lock, "pthread_mutex_lock")(mutex);
}
__attribute__((visibility("default"))) int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  locks.fetch_add(1, std::memory_order_relaxed);
  return real_of(real_read_lock, "pthread_rwlock_rdlock")(lock);
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
constexpr std::uint64_t kSmall = 16, kLarge = 256;  // samples per batch
constexpr int kImages = 2 * kLarge;
constexpr std::uint64_t kWarmSamples = 2048;  // minimum: enough for every buffer to reach its final size

// The maximum number of locks per batch, which include one per thread and those for the consumer, the allocator and
// wake-ups. A batch takes fewer than ten locks on an idle machine, and 30 if other programs use the CPUs. With one lock
// per row, a batch of 256 rows would exceed the limit.
constexpr double kMostLocks = 64;

struct Cost {
  double locks = 0, allocations = 0;
};

void give(Pipeline& pipeline, const Recipe& recipe, std::uint64_t batch_size, std::uint64_t& next) {
  std::vector<GivenSample> samples(batch_size);
  for (GivenSample& sample : samples) {
    sample.index = next++ % std::min<std::uint64_t>(recipe.format->size(), kImages);
    sample.draw = next;
  }
  EXPECT_TRUE(pipeline.give(std::move(samples)));
}

Cost cost_of_a_batch(const std::shared_ptr<const Recipe>& recipe, std::uint64_t batch_size, bool given,
                     bool adapts = false, const LoaderOptions& asked = {}) {
  base::test_conditions().read_ahead =
      base::ReadAheadMode::kNever;  // on a busy machine reads are slow, which adds work per read
  // every epoch has the same number of batches whatever their size, so per-epoch costs cancel out
  const auto planned = [&](std::uint64_t memory_budget) {
    if (given)
      return plan_given(*recipe, {.batch_size = batch_size, .num_workers = kThreads, .memory_budget = memory_budget});
    LoaderOptions options = asked;
    options.batch_size = batch_size;
    options.shuffle = true;
    options.num_workers = kThreads;
    options.memory_budget = memory_budget;
    options.world_size = kLarge / batch_size;
    return plan_pipeline(*recipe, options);
  };
  // small batches too are at most three ahead; otherwise those filled before counting began would be missing
  auto plan = planned(kAhead * planned(0)->batch_bytes);
  plan->adapts = adapts;
  Pipeline pipeline(recipe, *plan);
  EXPECT_TRUE(pipeline.begin({}, true));
  const std::uint64_t warm = std::max(kWarm, kWarmSamples / batch_size);
  std::uint64_t locks_then = 0, allocations_then = 0, epoch = 0, next = 0;
  for (std::uint64_t i = 0; given && i < kAhead; ++i) give(pipeline, *recipe, batch_size, next);
  for (std::uint64_t i = 0; i < warm + kCounted;) {
    if (i == warm) locks_then = locks, allocations_then = allocations;
    if (given) give(pipeline, *recipe, batch_size, next);
    Batch batch;
    const auto polled = pipeline.poll(200s, batch);
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

// Records the costs for --gtest_output=json:FILE, to compare two builds.
void record(const std::string& batch, const Cost& cost) {
  testing::Test::RecordProperty("locks_of_a_" + batch + "_batch", std::to_string(cost.locks));
  testing::Test::RecordProperty("allocations_of_a_" + batch + "_batch", std::to_string(cost.allocations));
}

// excused: the cost per sample that is accepted for known reasons.
void expect_nothing_per_sample(const std::shared_ptr<const Recipe>& recipe, bool given = false,
                               const Cost& excused = {}, const LoaderOptions& asked = {}) {
  if (!FEEDLINE_WATCH_COSTS) GTEST_SKIP() << "under a sanitizer, which replaces malloc and mutexes";
  const Cost small = cost_of_a_batch(recipe, kSmall, given, false, asked);
  const Cost large = cost_of_a_batch(recipe, kLarge, given, false, asked);
  record("small", small);
  record("large", large);
  // batches filled ahead at the end count, those at the beginning may not
  constexpr double kMostFilled = static_cast<double>(kCounted + kAhead) / kCounted;
  EXPECT_GT(small.locks, 1) << "nothing was counted";
  EXPECT_LT(small.locks, kMostLocks + excused.locks * kSmall * kMostFilled);
  EXPECT_LT(large.locks, kMostLocks + excused.locks * kLarge * kMostFilled);
  EXPECT_GT(small.allocations, 1) << "nothing was counted";
  constexpr double kRarely = 0.01;  // a buffer may still grow
  const double per_sample = (large.allocations - small.allocations) / (kLarge - kSmall);
  EXPECT_LT(per_sample, excused.allocations * kMostFilled + kRarely);
}

std::shared_ptr<const Recipe> recipe_of(std::shared_ptr<const format::Format> format, std::vector<Operation> steps,
                                        const std::optional<CachePoint>& cache = {}, const ViewPoint* views = nullptr) {
  auto recipe =
      make_recipe({"steady", std::move(format)}, steps, std::nullopt, Layout::kNchw, cache, {}, nullptr, views);
  EXPECT_TRUE(recipe) << recipe.error().message();
  return *recipe;
}

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Creates kImages images in class folders.
template <typename Encode>
std::shared_ptr<const format::Format> folder_of(const storage::TemporaryFolder& folder, Encode encode) {
  std::vector<std::vector<std::byte>> encoded;
  for (int i = 0; i < 16; ++i) encoded.push_back(encode(48 + i, 40 + i / 2));
  for (int i = 0; i < kImages; ++i)
    folder.write((i % 2 == 0 ? "cats/" : "dogs/") + std::to_string(i) + ".jpg",
                 text_of(encoded[static_cast<std::size_t>(i) % encoded.size()]));
  auto format = format::open(folder.path(), {});
  EXPECT_TRUE(format) << format.error().message();
  return *format;
}

std::vector<std::byte> jpeg(int width, int height) { return decode::encode({.width = width, .height = height}); }

// gap: the number of bytes of other data between the fields.
std::shared_ptr<const format::Format> shards_in(const storage::TemporaryFolder& folder, std::size_t gap = 0) {
  const auto image = jpeg(48, 40);
  for (int shard = 0; shard < 2; ++shard) {
    format::TarWriter tar;
    for (int i = 0; i < kImages / 2; ++i) {
      tar.add(std::to_string(i) + ".jpg", text_of(image));
      if (gap > 0) tar.add(std::to_string(i) + ".txt", std::string(gap, ' '));
      tar.add(std::to_string(i) + ".cls", "3");
    }
    folder.write(std::to_string(shard) + ".tar", tar.finish());
  }
  auto format = format::open(folder.path("{0..1}.tar"), {.index_directory = folder.path()});
  EXPECT_TRUE(format) << format.error().message();
  return *format;
}

const std::vector<Operation> kTraining{op::RandomResizedCrop{{24, 24}}, op::RandomHorizontalFlip{},
                                       op::Normalize{{0.5, 0.5, 0.5}, {0.2, 0.2, 0.2}}};

TEST(SteadyState, JpegsInFoldersCostNoLockOrAllocation) {
  const storage::TemporaryFolder folder;
  expect_nothing_per_sample(recipe_of(folder_of(folder, jpeg), kTraining));
}

TEST(SteadyState, JpegsThatLibjpegDecodesCostNoLockOrAllocation) {
  const storage::TemporaryFolder folder;
  int made = 0;
  const auto format = folder_of(folder, [&](int width, int height) {
    return ++made % 2 == 0 ? decode::encode({.width = width, .height = height, .progressive = true})
                           : decode::encode({.width = width, .height = height, .channels = 4, .stored = JCS_CMYK});
  });
  expect_nothing_per_sample(recipe_of(format, kTraining));
}

TEST(SteadyState, PngsInFoldersCostNoLockOrAllocation) {
  const storage::TemporaryFolder folder;
  const auto format = folder_of(folder, [](int width, int height) {
    return plain_png(100, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height));
  });
  expect_nothing_per_sample(recipe_of(format, {op::CenterCrop{{24, 24}}}));
}

std::vector<std::byte> webp(int width, int height) {
  const std::vector<std::uint8_t> pixels = decode::photo(width, height, 3);
  std::uint8_t* data = nullptr;
  const std::size_t size = WebPEncodeRGB(pixels.data(), width, height, 3 * width, 80, &data);
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), data, size);
  WebPFree(data);
  return bytes;
}

TEST(SteadyState, WebpsCostNoLockAndWhatLibwebpAllocates) {
  const storage::TemporaryFolder folder;
  // it cannot use our memory, and checks for SIMD instructions under a lock
  constexpr Cost kOfLibwebp{.locks = 4, .allocations = 3};
  expect_nothing_per_sample(recipe_of(folder_of(folder, webp), {op::CenterCrop{{24, 24}}}), false, kOfLibwebp);
}

TEST(SteadyState, ShardsCostNoLockOrAllocation) {
  const storage::TemporaryFolder folder;
  expect_nothing_per_sample(recipe_of(shards_in(folder), kTraining));
}

TEST(SteadyState, ShardsWhoseFieldsLieApartCostNoLockOrAllocation) {
  const storage::TemporaryFolder folder;
  constexpr std::size_t kTooFar = 100 << 10;  // too far apart for one read
  expect_nothing_per_sample(recipe_of(shards_in(folder, kTooFar), {op::CenterCrop{{24, 24}}}));
}

TEST(SteadyState, JoinedSourcesCostNoLockOrAllocation) {
  const storage::TemporaryFolder folder, others;
  const auto joined = format::join({folder_of(folder, jpeg), folder_of(others, jpeg)});
  ASSERT_TRUE(joined) << joined.error().message();
  expect_nothing_per_sample(recipe_of(*joined, kTraining));
}

TEST(SteadyState, MixedBatchesCostNoLockOrAllocation) {
  const storage::TemporaryFolder folder;
  const auto recipe = recipe_of(folder_of(folder, jpeg), kTraining);
  for (const MixMode mode : {MixMode::kBatch, MixMode::kElem, MixMode::kHalf}) {
    const LoaderOptions mixed{.repeat = 2, .mixup = 0.2, .cutmix = 1, .mix_mode = mode};
    expect_nothing_per_sample(recipe, false, {}, mixed);
    constexpr double kMore = 3;  // Slot::Prepared, and the repeated order of each short epoch
    EXPECT_LT(cost_of_a_batch(recipe, kSmall, false, false, mixed).allocations,
              cost_of_a_batch(recipe, kSmall, false).allocations + kMore);
  }
}

TEST(SteadyState, GivenOrdersCostNoLockOrAllocation) {
  const storage::TemporaryFolder folder;
  expect_nothing_per_sample(recipe_of(folder_of(folder, jpeg), kTraining), true);
}

TEST(SteadyState, GivenFilesCostAReadersLockAndNoAllocation) {
  const storage::TemporaryFolder folder;
  std::vector<GivenImage> given;
  for (int i = 0; i < kImages; ++i)  // longer than a string's inline buffer
    given.push_back({folder.write("images-of-one-folder/" + std::to_string(i) + ".jpg", text_of(jpeg(48, 40)))});
  const GivenSource files("given");
  files.add(std::move(given));
  constexpr Cost kOfTheirList{.locks = 1};  // which grows while it is read
  expect_nothing_per_sample(recipe_of(files.source().format(), kTraining), true, kOfTheirList);
}

TEST(SteadyState, CachedPixelsCostNoLockOrAllocation) {
  for (const bool in_memory : {true, false}) {
    const storage::TemporaryFolder folder, cached;
    const auto format = folder_of(folder, jpeg);
    std::vector<Operation> steps{op::Resize{{32, 32}}};
    steps.insert(steps.end(), kTraining.begin(), kTraining.end());
    const std::vector<Operation> before(steps.begin(), steps.begin() + 1);
    const auto cache =
        make_cache_point(in_memory ? "memory" : cached.path("pixels"), 64 << 20, {folder.path(), format}, before);
    ASSERT_TRUE(cache) << cache.error().message();
    ASSERT_TRUE(open_cache(*cache));
    expect_nothing_per_sample(recipe_of(format, steps, *cache));
  }
}

// Covers views that are decoded together, separately, as planes, and with shared steps.
TEST(SteadyState, ViewsCostNoLockOrAllocation) {
  const storage::TemporaryFolder folder;
  const auto format = folder_of(folder, jpeg);
  const auto view = [](int size, double largest) {
    return View{"", {op::RandomResizedCrop{{size, size}, {largest / 2, largest}}, op::RandomHorizontalFlip{}}, 3};
  };
  struct Case {
    std::vector<Operation> shared;
    double largest;
  };
  const Case cases[] = {{{}, 1.0},
                        {{}, 0.01},
                        {{op::Decode{ColorMode::kRgb, Fidelity::kFast}}, 1.0},
                        {{op::Resize{{64, 64}}, op::RandomHorizontalFlip{}}, 1.0}};
  for (const auto& [shared, largest] : cases) {
    const auto views =
        make_view_point({view(12, largest), view(8, largest / 2)}, "", {folder.path(), format}, shared.size(), nullptr);
    ASSERT_TRUE(views) << views.error().message();
    expect_nothing_per_sample(recipe_of(format, shared, {}, &*views));
  }
}

// Covers long rows, which threads receive one at a time, and short rows, which they receive in runs.
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
    const auto source = Source::arrays({array});
    ASSERT_TRUE(source) << source.error().message();
    expect_nothing_per_sample(recipe_of(source->format(), {}));
  }
}

// Changing the number of threads acquires a few locks per change, and none between changes.
TEST(SteadyState, AControllerCostsNoLock) {
  if (!FEEDLINE_WATCH_COSTS) GTEST_SKIP() << "under a sanitizer, which replaces mutexes";
  const storage::TemporaryFolder folder;
  const auto recipe = recipe_of(
      folder_of(folder, [](int width, int height) { return decode::encode({.width = width, .height = height}); }),
      {op::CenterCrop{{24, 24}}});
  for (const bool random : {false, true}) {
    base::test_conditions().random_threads = random;
    const Cost cost = cost_of_a_batch(recipe, kLarge, false, true);
    record(random ? "random" : "controlled", cost);
    EXPECT_LT(cost.locks, kMostLocks);
  }
  base::test_conditions().random_threads = false;
}

Cost cost_of_a_variable_size_batch(std::uint64_t batch_size) {
  const auto recipe = VariableSizeSamples::recipe(kLarge * 8);
  LoaderOptions options{.batch_size = batch_size, .shuffle = true, .num_workers = kThreads};
  const auto plan = plan_pipeline(*recipe, options);
  options.memory_budget = kAhead * (plan->batch_bytes + plan->variable_bytes);
  VariableSizeRun run(recipe, options, {});
  const std::uint64_t warm = 8 * std::max(kWarm, kWarmSamples / batch_size);  // each item gets few samples
  std::uint64_t locks_then = 0, allocations_then = 0, epoch = 0;
  run.begin(epoch, true);
  for (std::uint64_t i = 0; i < warm + kCounted;) {
    if (i == warm) locks_then = locks, allocations_then = allocations;
    const auto batch = run.next();
    EXPECT_TRUE(batch);
    if (*batch)
      ++i;
    else
      run.begin(++epoch, true);
  }
  return {static_cast<double>(locks - locks_then) / kCounted,
          static_cast<double>(allocations - allocations_then) / kCounted};
}

// Covers lists and padded rows. The remaining costs occur once per epoch; with small batches, an epoch has fewer
// samples.
TEST(SteadyState, VariableSizeFieldsCostNoAllocationOfASample) {
  if (!FEEDLINE_WATCH_COSTS) GTEST_SKIP() << "under a sanitizer, which replaces malloc";
  const Cost small = cost_of_a_variable_size_batch(kSmall), large = cost_of_a_variable_size_batch(kLarge);
  record("small_variable_size", small);
  record("large_variable_size", large);
  EXPECT_GT(small.allocations, 1) << "nothing was counted";
  constexpr double kRarely = 0.05;  // an item may still grow
  EXPECT_LT((large.allocations - small.allocations) / (kLarge - kSmall), kRarely);
}

TEST(SteadyState, TokensCostNoLockOrAllocation) {
  const storage::TemporaryFolder folder;
  std::string tokens;
  for (int i = 0; i < kImages * 64 + 1; ++i) tokens.append({static_cast<char>(i % 50 == 49 ? 0 : 1), 0});
  const std::vector<TokenFile> files{{folder.write("tokens.bin", tokens), 0}};
  for (const TokenOptions& options : {TokenOptions{.window = 64}, TokenOptions{.window = 64, .memory_bytes = 0},
                                      TokenOptions{.window = 64, .separator = 0},
                                      TokenOptions{.window = 64, .separator = 0, .documents = Documents::kApart}}) {
    const auto source = Source::tokens(files, options);
    ASSERT_TRUE(source) << source.error().message();
    expect_nothing_per_sample(recipe_of(source->format(), {}));
  }
}

}  // namespace
}  // namespace feedline::pipeline
