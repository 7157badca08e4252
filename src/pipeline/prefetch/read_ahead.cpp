// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/read_ahead.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "pipeline/planning/pipeline_plan.h"
#include "storage/read_speed.h"

namespace feedline::pipeline {
namespace {

// The storage counts as slow if four reads in a row are slow, or if more than one read in five is slow for some time.
constexpr int kSlowWeighs = 4;
constexpr int kSlowEnough = 16;

std::unexpected<Error> cancelled() {
  return std::unexpected(Error{ErrorCode::kCancelled, "the loader is closed", {}, 0});
}

// Requires: the record has as many buffers as there are parts.
void swap_buffers(FetchTable::Parts& parts, memory::Record& record) {
  std::swap(parts.front().buffer, record.storage);
  for (std::size_t i = 1; i < parts.size(); ++i) std::swap(parts[i].buffer, record.more[i - 1]);
}

// Returns the version of the object that was read.
std::optional<storage::Version> version_of(const FetchTable::Part& part) {
  if (!part.piece.reader) return part.whole_version;
  const auto version = part.piece.reader->version();
  return version ? std::optional(*version) : std::nullopt;
}

class ThreadReader final : public RecordReader {
 public:
  explicit ThreadReader(ReadAhead& ahead) : ahead_(ahead) {}
  Result<void> read(const PlanRow& row, std::uint64_t sample, const base::SampleKey& key,
                    memory::Record& record) override {
    return ahead_.read(row, sample, key, record, watch_);
  }

 private:
  ReadAhead& ahead_;
  ReadAhead::Watch watch_;
};

}  // namespace

std::unique_ptr<ReadAhead> ReadAhead::make(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan,
                                           ReadAheadMode mode, std::unique_ptr<const PartReads> parts) {
  if (mode == ReadAheadMode::kNever || !format || format->storage() == nullptr || format->most_pieces() == 0)
    return nullptr;
  return std::unique_ptr<ReadAhead>(new ReadAhead(std::move(format), plan, mode, std::move(parts)));
}

ReadAhead::ReadAhead(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan, ReadAheadMode mode,
                     std::unique_ptr<const PartReads> parts)
    : format_(std::move(format)),
      parts_(std::move(parts)),
      plan_(plan),
      mode_(mode),
      scheduler_(plan, format_->most_pieces(), mode == ReadAheadMode::kAuto, format_->storage()->joins_reads(), held_),
      shard_prefetcher_(ShardPrefetcher::make(*format_, plan)) {}

ReadAhead::~ReadAhead() { stop(); }

void ReadAhead::begin(bool goes_on, std::uint64_t epoch) {
  scheduler_.begin(goes_on, epoch);
  if (shard_prefetcher_) shard_prefetcher_->begin(goes_on);
  // if all of a remote dataset was cached, threads notice when that changes
  const bool is_slow =
      mode_ == ReadAheadMode::kAuto && format_->storage()->is_remote() && !scheduler_.has_turned_near();
  if (is_slow || mode_ == ReadAheadMode::kAlways || mode_ == ReadAheadMode::kThreads) go_far();
}

void ReadAhead::cancel() {
  is_cancelled_.store(true, std::memory_order_relaxed);
  scheduler_.stop();
  if (shard_prefetcher_) shard_prefetcher_->cancel();
}

void ReadAhead::stop() {
  cancel();
  thread_.reset();  // joins
  if (shard_prefetcher_) shard_prefetcher_->stop();
}

std::unique_ptr<RecordReader> ReadAhead::reader() { return std::make_unique<ThreadReader>(*this); }

Result<void> ReadAhead::read(const PlanRow& row, std::uint64_t sample, const base::SampleKey& key,
                             memory::Record& record, Watch& watch) {
  if (is_cancelled_.load(std::memory_order_relaxed)) return cancelled();
  if (shard_prefetcher_) shard_prefetcher_->reached(row);
  return scheduler_.is_far() ? read_far(row, sample, key, record, watch) : read_near(sample, record, watch);
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

Result<void> ReadAhead::read_missed(std::uint64_t sample, const base::SampleKey& key, memory::Record& record,
                                    Watch& watch) const {
  if (!parts_) return format_->read(sample, record);
  if (!watch.finder) watch.finder = std::make_unique<PartReads::Finder>(*parts_);
  const auto part = watch.finder->find(sample, key);
  if (!part) return format_->read(sample, record);
  storage::Read read{.piece = part->piece, .most_bytes = record.most_bytes};
  storage::read_piece(read);
  return parts_->accept(*part, sample, read.bytes, record) ? Result<void>() : format_->read(sample, record);
}

Result<void> ReadAhead::read_far(const PlanRow& row, std::uint64_t sample, const base::SampleKey& key,
                                 memory::Record& record, Watch& watch) {
  if (!watch.waiter) watch.waiter = std::make_shared<FetchWaiter>();
  watch.parts.resize(format_->most_pieces());
  record.more.resize(watch.parts.size() - 1);
  swap_buffers(watch.parts, record);
  std::shared_ptr<PartRead> range;
  const auto used = scheduler_.take(row, sample, watch.waiter, watch.parts, range, parts_ ? &key : nullptr);
  swap_buffers(watch.parts, record);
  if (!used) return read_missed(sample, key, record, watch);
  const auto fetched = std::span(watch.parts).first(*used);
  if (range) {
    fetched.front().piece = {};
    const auto& bytes = fetched.front().bytes;
    if (!bytes && bytes.error().code == ErrorCode::kCancelled) return cancelled();
    return parts_->accept(*range, sample, bytes, record) ? Result<void>() : format_->read(sample, record);
  }
  const auto version = parts_ && fetched.size() == 1 ? version_of(fetched.front()) : std::nullopt;
  auto done = accept(sample, fetched, record, watch);
  if (done && version) parts_->note(sample, record, *version);
  for (FetchTable::Part& part : fetched) part.shared.reset();
  return done;
}

Result<void> ReadAhead::accept(std::uint64_t sample, std::span<FetchTable::Part> parts, memory::Record& record,
                               Watch& watch) const {
  watch.bytes.clear();
  record.piece_offsets.clear();
  bool is_whole = !parts.empty();
  for (FetchTable::Part& part : parts) {
    const storage::Piece piece = std::exchange(part.piece, {});  // may be the last reference to the open file
    if (!part.bytes && part.bytes.error().code == ErrorCode::kCancelled) return cancelled();
    is_whole = is_whole && part.bytes && (!piece.reader || part.bytes->size() == piece.bytes);
    if (!is_whole) continue;
    watch.bytes.push_back(*part.bytes);
    record.piece_offsets.push_back(piece.offset);
  }
  return is_whole ? format_->accept(sample, watch.bytes, record) : format_->read(sample, record);
}

void ReadAhead::go_far() {
  if (!scheduler_.turn_far()) return;
  const auto kind = mode_ == ReadAheadMode::kThreads ? storage::QueueKind::kThreads : storage::QueueKind::kBest;
  auto thread = std::make_unique<FetchThread>(format_, plan_, kind, scheduler_, parts_.get());
  const bool is_running = thread->start();
  if (is_running) thread_ = std::move(thread);
  scheduler_.started(is_running);
}

std::string ReadAhead::explain() const {
  const FetchScheduler::Report report = scheduler_.report();
  const std::string text = (shard_prefetcher_ ? shard_prefetcher_->explain() + "; " : std::string()) +
                           "ahead of the threads if the storage is slow; ";
  if (plan_.read_ahead_bytes < report.mean_bytes)
    return text + "never, because batches leave no memory for it: raise memory_budget";
  if (report.most_under_way == 0) return text + "not yet";
  return text + (scheduler_.is_far() ? "now, " : "no longer, ") + "at most " + std::to_string(report.most_under_way) +
         " reads at once by " + std::string(report.queue) + "; a read takes " +
         std::to_string(report.latency_ns / 1000) + " us";
}

}  // namespace feedline::pipeline
