// SPDX-License-Identifier: Apache-2.0
#include "pipeline/version_check.h"

#include <algorithm>
#include <utility>

#include "storage/storage.h"

namespace feedline::pipeline {

std::unique_ptr<VersionCheck> VersionCheck::make(const format::RecordFormat& format) {
  Objects objects = format.unchecked();
  if (objects.empty()) return nullptr;
  return std::unique_ptr<VersionCheck>(new VersionCheck(std::move(objects)));
}

// Waiting threads send these requests, which do not read samples and are not counted as reads.
VersionCheck::VersionCheck(Objects objects)
    : objects_(std::move(objects)),
      queue_(storage::make_fetch_queue(storage::local_storage(), storage::QueueKind::kThreads)),
      known_(objects_.size(), false) {}

VersionCheck::~VersionCheck() { stop(); }

Result<void> VersionCheck::begin() {
  if (is_known_.load(std::memory_order_relaxed)) return {};
  {
    const std::lock_guard lock(mutex_);
    if (is_running_ || is_stopping_) return {};
    if (is_lost_) return std::unexpected(*error_);
    is_running_ = true;
    error_.reset();
  }
  thread_.reset();  // joins the thread of an earlier epoch, which has finished
  auto thread = base::Thread::start(
      "feedline-check", [this] { end(ask_all(), false); }, [this](Error error) { end(std::move(error), true); });
  if (!thread) {
    end({}, false);
    return std::unexpected(std::move(thread).error());
  }
  thread_.emplace(std::move(*thread));
  return {};
}

Result<void> VersionCheck::trouble() const {
  if (is_known_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(mutex_);
  if (error_) return std::unexpected(*error_);
  return {};
}

Result<bool> VersionCheck::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  ended_cv_.wait_for(lock, most, [this] { return !is_running_; });
  if (error_) return std::unexpected(*error_);
  return !is_running_;
}

void VersionCheck::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  queue_->wake();
  thread_.reset();  // joins
}

std::string VersionCheck::explain() const {
  const std::lock_guard lock(mutex_);
  return std::to_string(objects_.size()) + " shards were opened from cached indexes, without a request; " +
         std::to_string(known_count_) + " have been checked for changes since";
}

// ---- the thread

// Ends at the first error, or when stop() is called.
std::optional<Error> VersionCheck::ask_all() {
  std::vector<Question*> free;
  for (Question& question : questions_) free.push_back(&question);
  std::optional<Error> error;
  std::size_t next = 0;
  while (true) {
    while (!free.empty() && !error) {
      const auto object = next_unknown(next);
      if (!object) break;
      next = *object + 1;
      free.back()->object = *object;
      auto started = start(*free.back());
      if (started)
        free.pop_back();
      else
        error = std::move(started).error();
    }
    if (free.size() == questions_.size()) return error;
    auto* const done = static_cast<Question*>(queue_->finished(storage::FetchQueue::Clock::time_point::max()));
    if (done == nullptr || error) {  // stopping, or the other results are no longer needed
      for (Question& question : questions_) queue_->cancel(question);
      if (done == nullptr) continue;
    }
    free.push_back(done);
    const auto taken = take(done->object, done->bytes ? Result<void>() : std::unexpected(done->bytes.error()));
    if (!taken && !error) error = taken.error();
  }
}

std::optional<std::size_t> VersionCheck::next_unknown(std::size_t from) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(known_.begin() + static_cast<std::ptrdiff_t>(from), known_.end(), false);
  if (found == known_.end() || is_stopping_) return {};
  return static_cast<std::size_t>(found - known_.begin());
}

Result<void> VersionCheck::start(Question& question) {
  auto piece = objects_[question.object]->piece();
  if (!piece) return objects_[question.object]->note(std::unexpected(std::move(piece).error()));
  question.piece = std::move(*piece);
  queue_->start(question);
  return {};
}

Result<void> VersionCheck::take(std::size_t object, Result<void> came) {
  if (!came && came.error().code == ErrorCode::kCancelled) return {};
  FEEDLINE_CHECK_OK(objects_[object]->note(std::move(came)));
  const std::lock_guard lock(mutex_);
  known_[object] = true;
  ++known_count_;
  return {};
}

void VersionCheck::end(std::optional<Error> error, bool is_lost) {
  {
    const std::lock_guard lock(mutex_);
    is_lost_ = is_lost;
    if (error && !is_stopping_) error_ = std::move(error);
    is_known_.store(known_count_ == objects_.size(), std::memory_order_relaxed);
    is_running_ = false;
  }
  ended_cv_.notify_all();
}

}  // namespace feedline::pipeline
