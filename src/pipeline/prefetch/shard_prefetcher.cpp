// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/shard_prefetcher.h"

#include <algorithm>
#include <utility>

#include "base/guarded.h"

namespace feedline::pipeline {
namespace {

// The minimum number of shards to fetch before their first sample is needed: one is complete while the next is being
// fetched.
constexpr std::size_t kLeastAhead = 2;
// Shards that are fetched in advance may use this fraction of the cache, or one shard if that is larger.
constexpr std::uint64_t kPartAhead = 4;

std::uint64_t bytes_of(const std::vector<format::StoredShard>& shards) {
  std::uint64_t bytes = 0;
  for (const auto& shard : shards)
    if (!shard.path.empty()) bytes += cache::disk_bytes(shard.version.bytes);
  return bytes;
}

}  // namespace

ShardPrefetcher::SharedSchedule::SharedSchedule(ShardSchedule schedule_of, Shards all,
                                                std::unordered_map<std::string, std::size_t> named)
    : schedule(std::move(schedule_of)), shards(std::move(all)), numbers(std::move(named)) {}

std::uint64_t ShardPrefetcher::SharedSchedule::until(const cache::Entry& entry) const {
  const auto found = numbers.find(entry.object);
  if (found == numbers.end() || shards[found->second].version != entry.version) return cache::kNever;
  const std::lock_guard lock(mutex);
  return schedule.until(found->second);
}

std::unique_ptr<ShardPrefetcher> ShardPrefetcher::make(const format::RecordFormat& format, const PipelinePlan& plan) {
  auto storage = std::dynamic_pointer_cast<const cache::CachedStorage>(format.storage());
  if (!storage || plan.is_given) return nullptr;
  auto shards = format.stored_shards();
  auto ends = format.shard_ends();
  if (shards.empty() || shards.size() != ends.size()) return nullptr;
  std::unordered_map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < shards.size(); ++i)
    if (!shards[i].path.empty()) numbers.emplace(storage->identity(shards[i].path), i);
  if (numbers.empty()) return nullptr;
  // Threads may still be reading the batch before the latest one. Other ranks may lag: if all ranks deliver batches in
  // step, another rank may still be reading batches that this rank had prefetched before its user requested them. If
  // the cached copy of a shard has been evicted by then, the shard is fetched again.
  const std::uint64_t batches = plan.ranks.world_size == 1 ? 1 : 1 + std::max(plan.slots, plan.most_slots);
  const std::uint64_t slack = batches * plan.ranks.batch_rows * plan.ranks.world_size;
  auto shared = std::make_shared<SharedSchedule>(ShardSchedule(plan, std::move(ends), slack), std::move(shards),
                                                 std::move(numbers));
  return std::unique_ptr<ShardPrefetcher>(
      new ShardPrefetcher(std::move(storage), std::move(shared), plan.order.shard_window));
}

ShardPrefetcher::ShardPrefetcher(std::shared_ptr<const cache::CachedStorage> storage,
                                 std::shared_ptr<SharedSchedule> shared, std::uint64_t window)
    : storage_(std::move(storage)),
      shared_(std::move(shared)),
      subscription_(
          storage_->cache().follow([shared = shared_](const cache::Entry& entry) { return shared->until(entry); })),
      ahead_(std::max<std::size_t>(static_cast<std::size_t>(window), kLeastAhead)),
      walks_(shared_->schedule.walks()),
      is_too_large_(bytes_of(shared_->shards) > storage_->cache().limit()),
      was_read_(shared_->shards.size(), false) {}

ShardPrefetcher::~ShardPrefetcher() { stop(); }

void ShardPrefetcher::begin(bool goes_on) {
  storage_->cache().note_change();  // retry shards that found no room
  {
    const std::lock_guard lock(mutex_);
    goes_on_ = goes_on;
    batch_seen_.store(0, std::memory_order_relaxed);  // starts with the first row
  }
  if (!walks_ || thread_) return;
  auto thread = base::Thread::start(
      "feedline-copies", [this] { run(); }, [](const Error&) {});
  if (thread) thread_.emplace(std::move(*thread));  // otherwise the first read of a shard fetches it
}

void ShardPrefetcher::reached(const PlanRow& row) {
  if (row.plan == nullptr || *row.plan == nullptr) return;
  const plan::Plan& plan = **row.plan;
  const std::uint64_t batch = row.batch + 1;
  if (batch_seen_.load(std::memory_order_relaxed) == batch && plan_seen_.load(std::memory_order_relaxed) == &plan)
    return;
  {
    const std::lock_guard lock(mutex_);
    const bool is_other =
        batch_seen_.load(std::memory_order_relaxed) == 0 || plan_seen_.load(std::memory_order_relaxed) != &plan;
    batch_seen_.store(batch, std::memory_order_relaxed);
    plan_seen_.store(&plan, std::memory_order_relaxed);
    const std::lock_guard shared_lock(shared_->mutex);
    ShardSchedule& schedule = shared_->schedule;
    const bool goes_back = plan.begin_of(row.batch) < schedule.position();
    schedule.go_to(row.epoch, plan, row.batch);
    if (!is_other && (goes_back || schedule.position() < next_change_)) return;
    next_change_ = schedule.next_change();
    has_changed_ = true;
  }
  release_past();  // released by the thread that passed it, so room is free before it is needed
  changed_cv_.notify_one();
}

// If all shards fit in the cache, readers keep their copies open: open copies need no lookup, and other jobs cannot
// evict them.
void ShardPrefetcher::release_past() {
  std::vector<std::size_t> past;
  std::vector<cache::HeldCopy> held;  // closed outside the lock
  {
    const std::lock_guard lock(mutex_);
    const std::lock_guard shared_lock(shared_->mutex);
    for (std::size_t shard = 0; shard < was_read_.size(); ++shard) {
      const bool is_past = shared_->schedule.is_past(shard);
      if (is_past && was_read_[shard]) past.push_back(shard);
      was_read_[shard] = !is_past && (was_read_[shard] || shared_->schedule.until(shard) == 0);
    }
    for (const std::size_t shard : past)
      if (auto extracted = held_.extract(shard)) held.push_back(std::move(extracted.mapped()));
  }
  held.clear();
  if (!is_too_large_ || past.empty()) return;
  for (const std::size_t shard : past)
    if (!shared_->shards[shard].path.empty()) storage_->let_go(shared_->shards[shard].path);
  storage_->cache().note_change();
}

void ShardPrefetcher::cancel() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_cv_.notify_one();
  stop_.stop();
}

void ShardPrefetcher::stop() {
  cancel();
  thread_.reset();  // joins
}

// ---- the thread

void ShardPrefetcher::run() {
  while (wait()) fetch_wanted();
}

bool ShardPrefetcher::wait() {
  std::unique_lock lock(mutex_);
  changed_cv_.wait(lock, [this] { return has_changed_ || is_stopping_; });
  has_changed_ = false;
  return !is_stopping_;
}

bool ShardPrefetcher::has_news() const {
  const std::lock_guard lock(mutex_);
  return has_changed_ || is_stopping_;
}

// Returns the wanted shards in the order in which they are needed, and how many of them are being read.
ShardPrefetcher::Wanted ShardPrefetcher::wanted() const {
  const std::lock_guard lock(mutex_);
  const std::lock_guard shared_lock(shared_->mutex);
  Wanted wanted{shared_->schedule.wanted(ahead_, goes_on_)};
  for (const std::size_t shard : wanted.shards) wanted.being_read += shared_->schedule.until(shard) == 0;
  return wanted;
}

void ShardPrefetcher::fetch_wanted() {
  const Wanted wanted = this->wanted();
  std::uint64_t bytes = 0;  // of shards to fetch
  for (std::size_t i = 0; i < wanted.shards.size() && !has_news(); ++i) {
    const std::size_t number = wanted.shards[i];
    const format::StoredShard& shard = shared_->shards[number];
    if (shard.path.empty()) continue;
    if (i >= wanted.being_read) bytes += cache::disk_bytes(shard.version.bytes);
    if (i > wanted.being_read && bytes > storage_->cache().limit() / kPartAhead) return;
    if (!is_held(number)) fetch_shard(number);
  }
}

bool ShardPrefetcher::is_held(std::size_t shard) const {
  const std::lock_guard lock(mutex_);
  return held_.contains(shard);
}

void ShardPrefetcher::fetch_shard(std::size_t number) {
  const format::StoredShard& shard = shared_->shards[number];
  const std::uint64_t changes = storage_->cache().changes();
  if (const auto refused = refused_.find(number); refused != refused_.end() && refused->second == changes) return;
  auto brought = base::guarded([&] { return storage_->bring(shard.path, shard.version, stop_); });
  if (!brought || !*brought) {
    refused_[number] = changes;  // the read of the sample reports the error
    return;
  }
  ++fetched_;
  const Wanted wanted = this->wanted();
  if (std::ranges::find(wanted.shards, number) == wanted.shards.end()) return;  // no longer wanted
  const std::lock_guard lock(mutex_);
  held_.insert_or_assign(number, std::move(**brought));
}

std::string ShardPrefetcher::explain() const {
  std::string text = "evicts the copy that is needed last";
  if (!walks_) return text + "; the order always takes samples from all shards, so none is prefetched";
  return text + "; " + std::to_string(ahead_) + " whole shards are fetched ahead of their first sample, " +
         std::to_string(fetched_) + " so far";
}

}  // namespace feedline::pipeline
