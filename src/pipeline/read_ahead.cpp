// SPDX-License-Identifier: Apache-2.0
#include "pipeline/read_ahead.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "pipeline/pipeline_plan.h"
#include "storage/read_speed.h"

namespace feedline::pipeline {
namespace {

constexpr std::uint64_t kMostReads = 256;        // a sample in several objects is as many
constexpr std::uint64_t kFirstMean = 128 << 10;  // bytes of a sample, until some were seen: a photo

// Four slow reads in a row, or more than one in five for a while.
constexpr int kSlowWeighs = 4;
constexpr int kSlowEnough = 16;

std::unexpected<Error> cancelled() {
  return std::unexpected(Error{ErrorCode::kCancelled, "the loader is closed", {}, 0});
}

// Requires: as many buffers as parts.
void swap_buffers(FetchTable::Parts& parts, memory::Record& record) {
  std::swap(parts.front().buffer, record.storage);
  for (std::size_t i = 1; i < parts.size(); ++i) std::swap(parts[i].buffer, record.more[i - 1]);
}

}  // namespace

ReadAheadMode read_ahead_mode() {
  const char* text = std::getenv("FEEDLINE_READ_AHEAD");
  const std::string_view mode = text ? text : "";
  if (mode == "never") return ReadAheadMode::kNever;
  if (mode == "always") return ReadAheadMode::kAlways;
  if (mode == "threads") return ReadAheadMode::kThreads;
  return ReadAheadMode::kAuto;
}

std::unique_ptr<ReadAhead> ReadAhead::make(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan,
                                           ReadAheadMode mode) {
  if (mode == ReadAheadMode::kNever || !format || format->storage() == nullptr) return nullptr;
  return std::unique_ptr<ReadAhead>(new ReadAhead(std::move(format), plan, mode));
}

ReadAhead::ReadAhead(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan, ReadAheadMode mode)
    : format_(std::move(format)),
      plan_(plan),
      mode_(mode),
      parts_(format_->most_pieces()),
      slack_(4 * static_cast<std::uint64_t>(plan.threads)),
      // twice the slack, so that what nobody comes for leaves room for what is wanted
      depth_(2 * slack_, std::max(kMostReads / parts_, 4 * slack_)),
      entries_(std::max(kMostReads / parts_, 4 * slack_)),
      mean_bytes_(kFirstMean) {}

ReadAhead::~ReadAhead() { stop(); }

void ReadAhead::begin(bool goes_on) {
  After after;
  GivenBatches forgotten;
  {
    const BriefLock lock(mutex_);
    goes_on_ = goes_on;
    next_.is_next_epoch = false;
    if (plan_.is_given) {  // it begins anew, with its first batch
      std::swap(forgotten, given_);
      next_ = {.is_given = true};
      abandon(numbers_, after);
    }
  }
  do_after(after);
  if (mode_ == ReadAheadMode::kAlways || mode_ == ReadAheadMode::kThreads) go_far();
}

void ReadAhead::give(std::span<const GivenSample> samples, std::uint64_t oldest) {
  std::vector<std::uint64_t> batch;
  batch.reserve(samples.size());
  for (const GivenSample& sample : samples) batch.push_back(sample.index);
  After after;
  {
    const BriefLock lock(mutex_);
    for (; given_.first < oldest && !given_.samples.empty(); ++given_.first) given_.samples.pop_front();
    given_.samples.push_back(std::move(batch));
    wake(after);
  }
  do_after(after);
}

void ReadAhead::cancel() {
  is_cancelled_.store(true, std::memory_order_relaxed);
  After after;
  {
    const BriefLock lock(mutex_);
    stopping_ = true;
    wake(after);
  }
  do_after(after);
}

void ReadAhead::stop() {
  cancel();
  thread_.reset();  // joins
  queue_.reset();
}

// ---- threads that come for a sample ----

Result<void> ReadAhead::read(const PlanRow& row, std::uint64_t sample, memory::Record& record, Watch& watch) {
  if (is_cancelled_.load(std::memory_order_relaxed)) return cancelled();
  if (is_far_.load(std::memory_order_relaxed)) return read_far(row, sample, record, watch);
  return read_near(sample, record, watch);
}

Result<void> ReadAhead::read_near(std::uint64_t sample, memory::Record& record, Watch& watch) {
  const std::uint64_t started = base::now_ns();
  FEEDLINE_CHECK_OK(format_->read(sample, record));
  watch.slow = storage::is_slow(base::now_ns() - started, record.bytes_read) ? watch.slow + kSlowWeighs
                                                                             : std::max(watch.slow - 1, 0);
  if (watch.slow < kSlowEnough) return {};
  watch.slow = 0;
  go_far();
  return {};
}

Result<void> ReadAhead::read_far(const PlanRow& row, std::uint64_t sample, memory::Record& record, Watch& watch) {
  if (!watch.waiter) watch.waiter = std::make_shared<FetchWaiter>();
  watch.parts.resize(parts_);
  record.more.resize(parts_ - 1);
  swap_buffers(watch.parts, record);
  std::size_t used = 0;
  const bool is_taken = take(row, sample, watch, used);
  swap_buffers(watch.parts, record);
  if (!is_taken) return format_->read(sample, record);
  return accept(sample, std::span(watch.parts).first(used), record, watch);
}

// Has the entry's parts for those of the watch; false: nobody has fetched the sample.
bool ReadAhead::take(const PlanRow& row, std::uint64_t sample, Watch& watch, std::size_t& used) {
  After after;
  BriefLock lock(mutex_);
  depth_.taken(base::now_ns());
  FetchTable::Entry* entry = entries_.find(sample);
  if (entry == nullptr) {
    missed(row, after);
    lock.unlock();
    do_after(after);
    return false;
  }
  misses_ = 0;
  entries_.claim(*entry);
  if (!entry->is_finished && !is_broken_) {
    entry->waiter = watch.waiter;
    lock.unlock();
    watch.waiter->wait();
    lock.lock();
  }
  if (!entry->is_finished) return false;
  std::swap(watch.parts, entry->parts);
  used = entry->used;
  abandon(entry->number - std::min(entry->number, slack_), after);
  put_away(*entry, after);
  // woken for several at a time: waking takes longer than asking
  if (room() > depth_.reads() / 8) wake(after);
  lock.unlock();
  do_after(after);
  return true;
}

Result<void> ReadAhead::accept(std::uint64_t sample, std::span<FetchTable::Part> parts, memory::Record& record,
                               Watch& watch) const {
  watch.bytes.clear();
  bool is_whole = !parts.empty();
  for (FetchTable::Part& part : parts) {
    const storage::Piece piece = std::exchange(part.piece, {});  // perhaps the last to hold its file open
    if (!part.bytes && part.bytes.error().code == ErrorCode::kCancelled) return cancelled();
    is_whole = is_whole && part.bytes && (!piece.reader || part.bytes->size() == piece.bytes);
    if (is_whole) watch.bytes.push_back(*part.bytes);
  }
  return is_whole ? format_->accept(sample, watch.bytes, record) : format_->read(sample, record);
}

// Nobody has fetched what a thread came for: the thread is just before what is fetched, or the plan is not the one
// that is followed (any more).
void ReadAhead::missed(const PlanRow& row, After& after) {
  if ((row.plan == nullptr || *row.plan == nullptr) && !row.is_given) return;
  auto plan = row.plan != nullptr ? *row.plan : nullptr;
  const bool is_same_order = plan == next_.plan && row.is_given == next_.is_given;
  const bool is_behind = is_same_order && std::pair(row.batch, row.row) < std::pair(next_.batch, next_.row);
  if (is_behind && ++misses_ <= slack_) return;
  misses_ = 0;
  abandon(numbers_, after);
  after.plan = std::move(next_.plan);
  next_ = {row.epoch, std::move(plan), row.batch, row.row + 1, false, row.is_given};
  wake(after);
}

void ReadAhead::abandon(std::uint64_t before, After& after) {
  for (FetchTable::Entry* oldest = entries_.oldest_wanted(); oldest != nullptr && oldest->number < before;
       oldest = entries_.oldest_wanted()) {
    entries_.claim(*oldest);
    oldest->is_abandoned = true;
    if (oldest->is_finished) put_away(*oldest, after);
  }
}

void ReadAhead::put_away(FetchTable::Entry& entry, After& after) {
  held_bytes_ -= entry.held_bytes;
  if (spare_.size() >= depth_.reads() || !is_far_.load(std::memory_order_relaxed))
    return entries_.move_to(after.unused, entry);
  entry.held_bytes = entry.buffer_bytes();
  held_bytes_ += entry.held_bytes;
  spare_bytes_ += entry.held_bytes;
  entries_.move_to(spare_, entry);
}

void ReadAhead::wake(After& after) {
  if (!is_asleep_) return;
  is_asleep_ = false;
  after.sleeping = queue_.get();
}

void ReadAhead::do_after(After& after) {
  if (after.sleeping != nullptr) after.sleeping->wake();
  for (const auto& waiter : after.finished) waiter->tell();
  after = {};
}

void ReadAhead::go_far() {
  {
    const BriefLock lock(mutex_);
    if (is_broken_ || stopping_ || is_starting_) return;
    near_ = 0;
    if (thread_) return is_far_.store(true, std::memory_order_relaxed);
    is_starting_ = true;
  }
  auto thread = base::Thread::start(
      "feedline-ahead", [this] { run(); }, [this](const Error&) { give_up(); });
  After after;
  {
    const BriefLock lock(mutex_);
    is_starting_ = false;
    if (!thread) return;  // the threads go on reading by themselves
    thread_.emplace(std::move(*thread));
    is_far_.store(!is_broken_, std::memory_order_relaxed);
    wake(after);
  }
  do_after(after);
}

void ReadAhead::go_near(After& after) {
  is_far_.store(false, std::memory_order_relaxed);
  after.plan = std::move(next_.plan);
  next_ = {};
  abandon(numbers_, after);
  after.unused.splice(after.unused.end(), spare_);
  held_bytes_ -= std::exchange(spare_bytes_, 0);
}

std::uint64_t ReadAhead::held_bytes() const {
  const BriefLock lock(mutex_);
  return held_bytes_;
}

std::string ReadAhead::explain() const {
  std::uint64_t mean_bytes = 0, most_under_way = 0, latency_ns = 0;
  std::string_view queue;
  {
    const BriefLock lock(mutex_);
    mean_bytes = mean_bytes_;
    most_under_way = most_under_way_;
    latency_ns = depth_.latency_ns();
    queue = queue_ ? queue_->name() : "threads";
  }
  std::string text = "ahead of the threads where the storage is slow; ";
  if (plan_.read_ahead_bytes < mean_bytes)
    return text + "never, as the batches leave no memory for it: raise memory_budget";
  if (most_under_way == 0) return text + "not so far";
  text += is_far_.load(std::memory_order_relaxed) ? "now, " : "not any more, ";
  return text + "at most " + std::to_string(most_under_way) + " at once by " + std::string(queue) + ", a read takes " +
         std::to_string(latency_ns / 1000) + " us";
}

}  // namespace feedline::pipeline
