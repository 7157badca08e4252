// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/shard_prefetcher.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>

#include "format/tar/tar_format.h"
#include "format/tar/tar_writer.h"
#include "pipeline/fake_format.h"
#include "pipeline/pipeline.h"
#include "storage/temporary_folder.h"

namespace feedline::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kHang = 200s;  // exceeded only by a hang
constexpr int kShards = 32, kEach = 8;
constexpr std::size_t kBallast = 20'000;  // makes a shard much larger than one of its samples

// Counts all reads of shards.
struct Traffic {
  std::atomic<std::uint64_t> bytes{0}, reads{0};
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::string> begun;  // objects read in large pieces
  bool is_remote = false;       // simulates a remote storage
};

class CountedReader final : public storage::Reader {
 public:
  CountedReader(std::unique_ptr<storage::Reader> reader, std::shared_ptr<Traffic> traffic)
      : reader_(std::move(reader)), traffic_(std::move(traffic)) {}
  Result<storage::ObjectStat> stat() const override { return reader_->stat(); }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.size() > kBallast) {
      const std::lock_guard lock(traffic_->mutex);
      traffic_->begun.insert(name());
      traffic_->changed.notify_all();
    }
    traffic_->bytes += out.size();
    ++traffic_->reads;
    return reader_->read_at(offset, out);
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  const std::string& name() const override { return reader_->name(); }

 private:
  const std::unique_ptr<storage::Reader> reader_;
  const std::shared_ptr<Traffic> traffic_;
};

class CountedStorage final : public storage::Storage {
 public:
  explicit CountedStorage(std::shared_ptr<Traffic> traffic) : traffic_(std::move(traffic)) {}
  Result<std::unique_ptr<storage::Reader>> open(const std::string& path, storage::Access access) const override {
    FEEDLINE_TRY(auto reader, local_->open(path, access));
    return std::make_unique<CountedReader>(std::move(reader), traffic_);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override {
    return local_->read_all(path, buffer, most);
  }
  Result<std::vector<storage::Entry>> list(const std::string& directory) const override {
    return local_->list(directory);
  }
  Result<storage::ObjectStat> stat(const std::string& path) const override { return local_->stat(path); }
  Result<bool> is_directory(const std::string& path) const override { return local_->is_directory(path); }
  std::string identity(const std::string& path) const override { return local_->identity(path); }
  bool is_remote() const override { return traffic_->is_remote; }
  std::optional<std::string> local_path(const std::string& path) const override { return local_->local_path(path); }

 private:
  const std::shared_ptr<const storage::Storage> local_ = storage::local_storage();
  const std::shared_ptr<Traffic> traffic_;
};

class ShardPrefetcherTest : public testing::Test {
 protected:
  ShardPrefetcherTest() {
    for (int shard = 0; shard < kShards; ++shard) {
      format::TarWriter writer;
      for (int i = 0; i < kEach; ++i) {
        const int number = shard * kEach + i;
        const auto png = plain_png(static_cast<std::uint8_t>(number));
        const std::string key = std::to_string(1000 + number);
        writer.add(key + ".png", {reinterpret_cast<const char*>(png.data()), png.size()});
        writer.add(key + ".cls", std::to_string(number)).add(key + ".bin", std::string(kBallast, 'x'));
      }
      const std::string content = writer.finish();
      shard_bytes_ = content.size();
      shards_.push_back(folder_.write("shards/" + std::to_string(100 + shard) + ".tar", content));
    }
    format::OpenOptions plain;
    plain.storage = storage::local_storage();
    EXPECT_TRUE(format::TarFormat::open("shards", shards_, plain));  // stores their indexes
  }
  std::uint64_t dataset_bytes() const { return shard_bytes_ * kShards; }
  // Returns a limit with room for this many shards.
  CacheLimit room(std::uint64_t shards) const { return {.bytes = shards * cache::disk_bytes(shard_bytes_)}; }

  std::unique_ptr<Pipeline> pipeline(const LoaderOptions& options, CacheLimit limit) {
    auto opened = cache::NodeCache::open(folder_.path("cache"), limit);
    EXPECT_TRUE(opened) << opened.error().message();
    caches_.push_back(*opened);
    format::OpenOptions through;
    storages_.push_back(std::make_shared<cache::CachedStorage>(std::make_shared<CountedStorage>(traffic_), *opened));
    through.storage = storages_.back();
    auto format = format::TarFormat::open("shards", shards_, through);
    EXPECT_TRUE(format) << format.error().message();
    auto recipe = make_recipe({"shards", *format}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
    EXPECT_TRUE(recipe) << recipe.error().message();
    auto plan = plan_pipeline(**recipe, options);
    EXPECT_TRUE(plan) << plan.error().message();
    return std::make_unique<Pipeline>(std::move(*recipe), *plan);
  }
  static LoaderOptions options(bool shuffle, std::uint64_t window) {
    LoaderOptions options;
    options.batch_size = 4;
    options.num_workers = 1;
    options.memory_budget = 4 << 20;
    options.shuffle = shuffle;
    options.shard_window = window;
    return options;
  }
  // Returns the labels of the next batch after checking that its images match; empty at the end of the epoch.
  std::vector<std::int64_t> next(Pipeline& pipeline) {
    Batch batch;
    const auto polled = pipeline.poll(kHang, batch);
    EXPECT_TRUE(polled) << polled.error().message();
    if (!polled || *polled != Loader::Polled::kBatch) return {};
    const auto* values = batch.fields()[1].array.as<std::int64_t>();
    for (std::uint64_t row = 0; row < batch.rows(); ++row)
      EXPECT_EQ(batch.fields()[0].array.as<std::uint8_t>()[row * 48], static_cast<std::uint8_t>(values[row]));
    return {values, values + batch.rows()};
  }
  // Reads the rest of an epoch from this position, checks that each sample is delivered once, and returns the number of
  // bytes fetched.
  std::uint64_t epoch(Pipeline& pipeline, std::uint64_t number, std::uint64_t position = 0) {
    const std::uint64_t before = traffic_->bytes;
    EXPECT_TRUE(pipeline.begin({number, position, {}, 0}, false));
    std::multiset<std::int64_t> labels;
    for (auto batch = next(pipeline); !batch.empty(); batch = next(pipeline)) labels.insert(batch.begin(), batch.end());
    EXPECT_EQ(labels.size(), kShards * kEach - position);
    EXPECT_EQ(std::set(labels.begin(), labels.end()).size(), labels.size());
    return traffic_->bytes - before;
  }
  // Like epoch(), for several ranks; returns the total number of bytes that they fetched.
  std::uint64_t epoch_of_ranks(LoaderOptions of_rank, std::uint64_t world, CacheLimit limit, std::uint64_t number) {
    of_rank.world_size = world;
    for (of_rank.rank = ranks_.size(); of_rank.rank < world; ++of_rank.rank) ranks_.push_back(pipeline(of_rank, limit));
    const std::uint64_t before = traffic_->bytes;
    std::multiset<std::int64_t> labels;
    for (auto& rank : ranks_) EXPECT_TRUE(rank->begin({number, 0, {}, 0}, false));
    for (bool is_over = false; !is_over;)
      for (auto& rank : ranks_) {
        const auto batch = next(*rank);
        labels.insert(batch.begin(), batch.end());
        is_over = batch.empty();
      }
    EXPECT_EQ(labels.size(), std::size_t{kShards * kEach});
    EXPECT_EQ(std::set(labels.begin(), labels.end()).size(), labels.size());
    return traffic_->bytes - before;
  }
  // Like epoch(), without a plan: each shard is opened, read and closed in turn, as for datasets with thousands of
  // shards.
  std::uint64_t without_plan(const LoaderOptions& options, CacheLimit limit, std::uint64_t epochs) {
    auto opened = cache::NodeCache::open(folder_.path("lru"), limit);
    EXPECT_TRUE(opened);
    const cache::CachedStorage storage(std::make_shared<CountedStorage>(traffic_), *opened);
    plan::OrderConfig order{.size = kShards * kEach, .shuffle = options.shuffle, .seed = options.seed};
    std::vector<std::uint64_t> ends;
    for (std::uint64_t i = 1; i <= kShards; ++i) ends.push_back(i * kEach);
    order.shard_ends = std::make_shared<const std::vector<std::uint64_t>>(ends);
    order.shard_window = options.shard_window;
    std::uint64_t last = 0;
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      last = traffic_->bytes;
      const auto placed = plan::make_order(order, epoch);
      for (std::uint64_t position = 0; position < order.size; position += kEach) {
        const auto reader = storage.open(shards_[placed->at(position).sample / kEach], storage::Access::kRead);
        std::array<std::byte, 1000> bytes{};
        EXPECT_TRUE(reader && (*reader)->read_at(2000, bytes));
        now_ += 24h;  // opened later, by a simulated clock
        const auto name = cache::entry_name((*reader)->name(), *(*reader)->version());
        std::filesystem::last_write_time(cache::copy_path(folder_.path("lru"), name) + std::string(cache::kObject),
                                         now_);
      }
    }
    return traffic_->bytes - last;
  }

  storage::TemporaryFolder folder_;
  std::filesystem::file_time_type now_ = std::filesystem::file_time_type::clock::now() - 24h * 1000;
  std::vector<std::string> shards_;
  std::uint64_t shard_bytes_ = 0;
  const std::shared_ptr<Traffic> traffic_ = std::make_shared<Traffic>();
  std::vector<std::shared_ptr<cache::NodeCache>> caches_;
  std::vector<std::shared_ptr<const cache::CachedStorage>> storages_;
  std::vector<std::unique_ptr<Pipeline>> ranks_;
};

// With LRU eviction and a cache of half the dataset's size, sequential epochs fetch everything again. With the plan,
// shards that are needed next stay cached.
TEST_F(ShardPrefetcherTest, OfACacheOfHalfTheDatasetThePlanMakesWhatTheLeastRecentlyUsedDoesNot) {
  const auto in_order = options(false, 0);
  EXPECT_EQ(without_plan(in_order, room(kShards / 2), 3), dataset_bytes())
      << "each shard is evicted just before it is needed";
  const auto loader = pipeline(in_order, room(kShards / 2));
  EXPECT_GE(epoch(*loader, 0), dataset_bytes());
  for (std::uint64_t number = 1; number < 4; ++number) {
    const std::uint64_t bytes = epoch(*loader, number);
    EXPECT_LE(bytes, dataset_bytes() * 7 / 10) << "epoch " << number;
    EXPECT_GE(bytes, dataset_bytes() * 4 / 10) << "no more than half can be cached";
  }
}

TEST_F(ShardPrefetcherTest, ShuffledByShardsLessIsFetchedThanByTheLeastRecentlyUsed) {
  const auto shards = options(true, 1);
  const std::uint64_t least_recent = without_plan(shards, room(kShards / 2), 4);
  const auto loader = pipeline(shards, room(kShards / 2));
  std::uint64_t planned = 0;
  for (std::uint64_t number = 0; number < 4; ++number) planned = epoch(*loader, number);
  EXPECT_LE(planned, dataset_bytes() * 75 / 100);
  EXPECT_LT(planned, least_recent);
}

// If all shards are needed at all times, cached shards stay cached, and all other shards are read sample by sample.
TEST_F(ShardPrefetcherTest, InARandomOrderNoShardMakesRoomForAnother) {
  const auto loader = pipeline(options(true, 0), room(kShards / 2));
  EXPECT_LE(epoch(*loader, 0), dataset_bytes() * 6 / 10);
  EXPECT_LE(epoch(*loader, 1), dataset_bytes() / 10);
  EXPECT_EQ(caches_.front()->counts().removed, 0u);
  EXPECT_NE(loader->explain_reads().find("none is prefetched"), std::string::npos) << loader->explain_reads();
}

TEST_F(ShardPrefetcherTest, OfACacheOfTheWholeDatasetNothingIsFetchedTwice) {
  for (const auto& order : {options(false, 0), options(true, 2), options(true, 0)}) {
    const auto loader = pipeline(order, room(kShards));
    epoch(*loader, 0);
    EXPECT_EQ(epoch(*loader, 1), 0u);
    EXPECT_EQ(epoch(*loader, 2, 100), 0u);
  }
  EXPECT_LE(traffic_->bytes, dataset_bytes() + 1024) << "file types are checked, but no sample is read";
}

// Each rank has its own cache object, as in a separate process, and the ranks read batches in turn.
TEST_F(ShardPrefetcherTest, RanksShareWhatIsThereAndEachShardIsFetchedOnceForAll) {
  EXPECT_LE(epoch_of_ranks(options(false, 0), 2, room(kShards), 0), dataset_bytes() + 2048);
  EXPECT_EQ(epoch_of_ranks(options(false, 0), 2, room(kShards), 1), 0u);
}

// With a cache of a third of the dataset's size, no shard is fetched twice in an epoch, however many ranks need it, and
// shards that fit are still cached in the next epoch.
TEST_F(ShardPrefetcherTest, RanksWithACacheThatIsTooSmallFetchNoShardTwiceInAnEpoch) {
  constexpr std::uint64_t kGlances = std::uint64_t{4} * kShards * 1024;
  for (const auto& order : {options(false, 0), options(true, 1), options(true, 2)}) {
    ranks_.clear();
    for (std::uint64_t number = 0; number < 4; ++number) {
      const std::uint64_t bytes = epoch_of_ranks(order, 4, room(kShards / 3), number);
      EXPECT_LE(bytes, dataset_bytes() + kGlances) << "epoch " << number << ", window " << order.shard_window;
      const bool finds_copies = number > 0 && !order.shuffle;
      EXPECT_LE(bytes, finds_copies ? dataset_bytes() * 85 / 100 : dataset_bytes() + kGlances) << "epoch " << number;
    }
  }
}

// One of four ranks has prefetched shards and released them. The other ranks may not have opened any shard yet.
TEST_F(ShardPrefetcherTest, WhatARankBehindMayStillReadMakesNoRoom) {
  constexpr std::uint64_t kRoom = 6;  // in batches of all ranks, each of two shards
  auto of_rank = options(true, 2);
  of_rank.world_size = 4;
  const auto of_four_ranks = pipeline(of_rank, room(2 * kRoom));
  PipelinePlan plan = of_four_ranks->plan();
  plan.slots = plan.most_slots = 8;
  auto opened = cache::NodeCache::open(folder_.path("of a rank"), room(2 * kRoom));
  ASSERT_TRUE(opened);
  format::OpenOptions through;
  const auto storage = std::make_shared<cache::CachedStorage>(std::make_shared<CountedStorage>(traffic_), *opened);
  through.storage = storage;
  const auto format = format::TarFormat::open("shards", shards_, through);
  ASSERT_TRUE(format);
  const auto ahead = ShardPrefetcher::make(**format, plan);
  ASSERT_TRUE(ahead);
  const auto whole = std::make_shared<const plan::Plan>(whole_epoch(plan));
  std::vector<std::uint64_t> ends;
  for (std::uint64_t i = 1; i <= kShards; ++i) ends.push_back(i * kEach);
  const auto uses = plan::make_order(plan.order, 0)->shard_uses(ends);
  cache::Stop stop;
  for (std::uint64_t batch = 0; batch < whole->batches(); ++batch) {
    ahead->reached({.epoch = 0, .plan = &whole, .batch = batch});
    for (std::size_t shard = 0; shard < uses.size(); ++shard)
      if (uses[shard].first == whole->begin_of(batch)) {
        const auto brought = storage->bring(shards_[shard], *storage::local_storage()->stat(shards_[shard]), stop);
        ASSERT_TRUE(brought);
        const bool finds_room = batch < kRoom || batch > plan.slots + 1;
        EXPECT_EQ(brought->has_value(), finds_room) << "batch " << batch;
      }
    EXPECT_EQ((*opened)->counts().removed > 0, batch > plan.slots + 1) << "batch " << batch;
  }
}

// Shards are fetched in pieces that fit in the memory budget, which all loaders of a storage share.
TEST_F(ShardPrefetcherTest, WhatIsOnItsWayIntoTheCacheIsWithinTheBudget) {
  traffic_->is_remote = true;
  auto small = options(false, 0);
  small.memory_budget = std::uint64_t{1} << 20;
  small.num_workers = 3;
  const auto loader = pipeline(small, room(kShards));
  EXPECT_EQ(loader->plan().copy_bytes, small.memory_budget / 8);
  EXPECT_EQ(loader->plan().bytes_for_batches() + loader->plan().read_ahead_bytes, small.memory_budget * 7 / 8);
  EXPECT_LE(epoch(*loader, 0), dataset_bytes() + 1024 * kShards);
  const std::uint64_t most = storages_.back()->piece_memory().most_held();
  EXPECT_LE(most, loader->plan().copy_bytes);
  EXPECT_GT(most, loader->plan().copy_bytes / 2) << "two pieces of the minimum size at a time";
}

TEST_F(ShardPrefetcherTest, AnEpochThatIsResumedInTheMiddleGoesOnWithTheSameCopies) {
  const auto in_order = options(false, 0);
  {
    const auto loader = pipeline(in_order, room(kShards / 2));
    epoch(*loader, 0);
    epoch(*loader, 1);
  }
  const auto loader = pipeline(in_order, room(kShards / 2));
  EXPECT_LE(epoch(*loader, 2, kShards * kEach / 2), dataset_bytes() / 2) << "the second half, which was not cached";
  EXPECT_LE(epoch(*loader, 3), dataset_bytes() * 7 / 10) << "and the first half is still cached";
}

// While the consumer is stopped, two shards whose samples are not needed yet are fetched, and no more.
TEST_F(ShardPrefetcherTest, WholeShardsComeBeforeTheirFirstSample) {
  auto of_one = options(false, 0);
  const auto loader = pipeline(of_one, room(kShards));
  ASSERT_TRUE(loader->begin({}, false));
  EXPECT_FALSE(next(*loader).empty());
  std::unique_lock lock(traffic_->mutex);
  EXPECT_TRUE(traffic_->changed.wait_for(lock, kHang, [&] { return traffic_->begun.contains(shards_[2]); }));
  lock.unlock();
  loader->stop();
  const auto far = storage::local_storage()->identity(shards_[kShards / 2]);
  EXPECT_FALSE(
      caches_.front()->find(far, *storage::local_storage()->stat(shards_[kShards / 2]), cache::NodeCache::Check::kNo));
  EXPECT_NE(loader->explain_reads().find("fetched ahead of their first sample"), std::string::npos);
}

TEST_F(ShardPrefetcherTest, AShardThatIsBeingFetchedIsNotWaitedForAtTheEndAndLeavesNothing) {
  const auto loader = pipeline(options(false, 0), room(kShards));
  ASSERT_TRUE(loader->begin({}, false));
  EXPECT_FALSE(next(*loader).empty());
  {
    std::unique_lock lock(traffic_->mutex);
    ASSERT_TRUE(traffic_->changed.wait_for(lock, kHang, [&] { return !traffic_->begun.empty(); }));
  }
  loader->stop();
  const auto there = cache::scan(folder_.path("cache"), cache::Leftovers::kLook, cache::node_calls());
  ASSERT_TRUE(there);
  std::uint64_t whole = 0;
  for (const auto& copy : there->whole) whole += cache::disk_bytes(copy.bytes);
  EXPECT_EQ(there->disk_bytes, whole) << "an unfinished copy has released its room";
}

}  // namespace
}  // namespace feedline::pipeline
