// SPDX-License-Identifier: Apache-2.0
#include "pipeline/read_ahead.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "pipeline/pipeline_plan.h"
#include "storage/read_speed.h"

namespace feedline::pipeline {
namespace {

constexpr std::uint64_t kMostReads = 256;
constexpr std::uint64_t kFirstMean = 128 << 10;  // bytes of a sample, until some were seen: a photo

// Four slow reads in a row, or more than one in five for a while.
constexpr int kSlowWeighs = 4;
constexpr int kSlowEnough = 16;

}  // namespace

ReadAheadMode read_ahead_mode() {
  const char* text = std::getenv("FEEDLINE_READ_AHEAD");
  const std::string_view mode = text ? text : "";
  if (mode == "never") return ReadAheadMode::kNever;
  if (mode == "always") return ReadAheadMode::kAlways;
  if (mode == "threads") return ReadAheadMode::kThreads;
  return ReadAheadMode::kAuto;
}

std::unique_ptr<ReadAhead> ReadAhead::make(std::shared_ptr<const format::Format> format, const PipelinePlan& plan,
                                           ReadAheadMode mode) {
  if (mode == ReadAheadMode::kNever || format->storage() == nullptr) return nullptr;
  return std::unique_ptr<ReadAhead>(new ReadAhead(std::move(format), plan, mode));
}

ReadAhead::ReadAhead(std::shared_ptr<const format::Format> format, const PipelinePlan& plan, ReadAheadMode mode)
    : format_(std::move(format)),
      plan_(std::make_shared<const PipelinePlan>(plan)),
      mode_(mode),
      slack_(4 * static_cast<std::uint64_t>(plan.options.num_workers)),
      // twice the slack, so that what nobody comes for leaves room for what is wanted
      depth_(2 * slack_, std::max(kMostReads, 4 * slack_)),
      mean_bytes_(kFirstMean) {}

ReadAhead::~ReadAhead() { stop(); }

void ReadAhead::begin(bool goes_on) {
  const std::lock_guard lock(mutex_);
  goes_on_ = goes_on;
  next_.is_next_epoch = false;
  if (plan_->options.given_order) {  // it begins anew, with its first batch
    given_ = {};
    next_ = {.is_given = true};
    abandon(numbers_);
  }
  if (mode_ == ReadAheadMode::kAlways || mode_ == ReadAheadMode::kThreads) go_far();
}

void ReadAhead::give(std::span<const GivenSample> samples, std::uint64_t oldest) {
  const std::lock_guard lock(mutex_);
  for (; given_.first < oldest && !given_.samples.empty(); ++given_.first) given_.samples.pop_front();
  auto& batch = given_.samples.emplace_back();
  batch.reserve(samples.size());
  for (const GivenSample& sample : samples) batch.push_back(sample.index);
  wake();
}

void ReadAhead::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake();
  }
  thread_.reset();  // joins
  queue_.reset();
}

// ---- threads that come for a sample ----

Result<void> ReadAhead::read(const PlanRow& row, std::uint64_t sample, memory::Record& record, Watch& watch) {
  if (is_far_.load(std::memory_order_relaxed)) return read_far(row, sample, record);
  return read_near(sample, record, watch);
}

Result<void> ReadAhead::read_near(std::uint64_t sample, memory::Record& record, Watch& watch) {
  const std::uint64_t started = base::now_ns();
  FEEDLINE_CHECK_OK(format_->read(sample, record));
  watch.slow = storage::is_slow(base::now_ns() - started, record.bytes_read) ? watch.slow + kSlowWeighs
                                                                             : std::max(watch.slow - 1, 0);
  if (watch.slow < kSlowEnough) return {};
  watch.slow = 0;
  const std::lock_guard lock(mutex_);
  go_far();
  return {};
}

Result<void> ReadAhead::read_far(const PlanRow& row, std::uint64_t sample, memory::Record& record) {
  std::unique_lock lock(mutex_);
  depth_.taken(base::now_ns());
  Entry* entry = find(sample);
  if (entry == nullptr) {
    missed(row);
    lock.unlock();
    return format_->read(sample, record);
  }
  misses_ = 0;
  entry->is_claimed = true;
  ++waiting_;
  finished_cv_.wait(lock, [&] { return entry->is_finished || is_broken_; });
  --waiting_;
  if (!entry->is_finished) {
    lock.unlock();
    return format_->read(sample, record);
  }
  storage::Fetch& fetch = entry->fetch;
  std::swap(record.storage, fetch.buffer);
  const auto bytes = fetch.bytes ? std::optional(*fetch.bytes) : std::nullopt;
  const bool is_whole = bytes && (!fetch.piece.reader || bytes->size() == fetch.piece.bytes);
  abandon(entry->number - std::min(entry->number, slack_));
  put_away(*entry);
  // woken for several at a time: waking takes longer than asking
  if (room() > depth_.reads() / 8) wake();
  lock.unlock();
  return is_whole ? format_->accept(sample, *bytes, record) : format_->read(sample, record);
}

ReadAhead::Entry* ReadAhead::find(std::uint64_t sample) {
  const auto found = std::ranges::find_if(entries_, [sample](const auto& entry) {
    return entry->sample == sample && !entry->is_claimed && !entry->is_abandoned;
  });
  return found == entries_.end() ? nullptr : found->get();
}

// Nobody has fetched what a thread came for: the thread is just before what is fetched, or the plan is not the one
// that is followed (any more).
void ReadAhead::missed(const PlanRow& row) {
  const auto plan = row.plan != nullptr ? *row.plan : nullptr;
  if (plan == nullptr && !row.is_given) return;
  const bool is_same_order = plan == next_.plan && row.is_given == next_.is_given;
  const bool is_behind = is_same_order && std::pair(row.batch, row.row) < std::pair(next_.batch, next_.row);
  if (is_behind && ++misses_ <= slack_) return;
  misses_ = 0;
  abandon(numbers_);
  next_ = {row.epoch, plan, row.batch, row.row + 1, false, row.is_given};
  wake();
}

void ReadAhead::abandon(std::uint64_t before) {
  for (std::size_t i = 0; i < entries_.size() && entries_[i]->number < before;) {
    Entry& entry = *entries_[i];
    if (!entry.is_claimed) entry.is_abandoned = true;
    if (entry.is_abandoned && entry.is_finished)
      put_away(entry);  // and the next one is in its place
    else
      ++i;
  }
}

void ReadAhead::put_away(const Entry& entry) {
  const auto place = std::ranges::find(entries_, &entry, &std::unique_ptr<Entry>::get);
  std::unique_ptr<Entry> spare = std::move(*place);
  entries_.erase(place);
  held_bytes_ -= spare->held_bytes;
  if (spare_.size() >= depth_.reads() || !is_far_.load(std::memory_order_relaxed)) return;
  *spare = Entry{.held_bytes = spare->fetch.buffer.capacity(), .fetch = {.buffer = std::move(spare->fetch.buffer)}};
  held_bytes_ += spare->held_bytes;
  spare_.push_back(std::move(spare));
}

void ReadAhead::wake() {
  if (!is_asleep_) return;
  is_asleep_ = false;
  queue_->wake();
}

void ReadAhead::go_far() {
  if (is_broken_ || stopping_) return;
  near_ = 0;
  if (!thread_) {
    auto thread = base::Thread::start(
        "feedline-ahead", [this] { run(); }, [this](const Error&) { give_up(); });
    if (!thread) return;  // the threads go on reading by themselves
    thread_.emplace(std::move(*thread));
  }
  is_far_.store(true, std::memory_order_relaxed);
}

void ReadAhead::go_near() {
  is_far_.store(false, std::memory_order_relaxed);
  next_ = {};
  abandon(numbers_);
  std::erase_if(spare_, [this](const auto& entry) {
    held_bytes_ -= entry->held_bytes;
    return true;
  });
}

std::uint64_t ReadAhead::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

std::string ReadAhead::explain() const {
  const std::lock_guard lock(mutex_);
  std::string text = "ahead of the threads where the storage is slow; ";
  if (plan_->read_ahead_bytes < mean_bytes_)
    return text + "never, as the batches leave no memory for it: raise memory_budget";
  if (most_under_way_ == 0) return text + "not so far";
  text += is_far_.load(std::memory_order_relaxed) ? "now, " : "not any more, ";
  return text + "at most " + std::to_string(most_under_way_) + " at once by " +
         std::string(queue_ ? queue_->name() : "threads") + ", a read takes " +
         std::to_string(depth_.latency_ns() / 1000) + " us";
}

}  // namespace feedline::pipeline
