// SPDX-License-Identifier: Apache-2.0
#include "pipeline/clip_ahead.h"

#include <utility>

#include "format/format.h"
#include "memory/sample_limit.h"
#include "pipeline/fields/clip_path.h"
#include "pipeline/fields/field_scratch.h"
#include "pipeline/planning/pipeline_plan.h"

namespace feedline::pipeline {
namespace {

// Enough for 300 requests per second at 50 ms.
constexpr int kThreads = 16;
// Clips that are fetched and not yet taken.
constexpr std::size_t kMostClips = 64;

}  // namespace

std::unique_ptr<ClipAhead> ClipAhead::make(std::shared_ptr<const Recipe> recipe, const PipelinePlan& plan,
                                           base::ReadAheadMode mode) {
  if (mode == base::ReadAheadMode::kNever || !recipe->has_clips || plan.is_given || !recipe->records) return nullptr;
  const auto storage = recipe->records->storage();
  if (storage == nullptr || !storage->joins_reads()) return nullptr;
  return std::unique_ptr<ClipAhead>(new ClipAhead(std::move(recipe), plan));
}

ClipAhead::ClipAhead(std::shared_ptr<const Recipe> recipe, const PipelinePlan& plan)
    : recipe_(std::move(recipe)), plan_(plan), order_(plan, static_cast<std::uint64_t>(plan.threads) * 2) {
  for (const auto& path : recipe_->paths) paths_.push_back(dynamic_cast<const ClipPath*>(path.get()));
}

ClipAhead::~ClipAhead() { stop(); }

void ClipAhead::begin(bool goes_on) {
  FetchOrder::Past past;
  const std::lock_guard lock(mutex_);
  order_.begin(goes_on, past);
}

void ClipAhead::stop() {
  cancel();
  std::vector<base::Thread> threads;  // joined when it is destroyed, without the lock
  {
    const std::lock_guard lock(mutex_);
    threads.swap(threads_);
  }
}

void ClipAhead::cancel() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  finished_.notify_all();
}

// A failure to start some or all threads only makes reads slower.
void ClipAhead::start_threads() {
  for (int i = 0; i < kThreads; ++i) {
    auto thread = base::Thread::start(
        "feedline-clip" + std::to_string(i), [this] { work(); }, [this](const Error&) { cancel(); });
    if (!thread) return;
    threads_.push_back(std::move(*thread));
  }
}

bool ClipAhead::has_room() const { return entries_.size() < kMostClips && held_bytes_ <= plan_.read_ahead_bytes; }

std::shared_ptr<const FetchedClips> ClipAhead::take(const PlanRow& row, std::uint64_t sample,
                                                    const base::SampleKey& key) {
  FetchOrder::Past past;
  std::map<Name, std::shared_ptr<Entry>> dropped;
  std::unique_lock lock(mutex_);
  if (is_stopping_) return nullptr;
  const auto found = entries_.find({key.epoch, key.sample, sample});
  if (found == entries_.end()) {
    if (order_.missed(row, past)) {
      entries_.swap(dropped);
      held_bytes_ = 0;
      if (threads_.empty()) start_threads();
      changed_.notify_all();
    }
    return nullptr;
  }
  order_.found();
  const std::shared_ptr<Entry> entry = found->second;
  finished_.wait(lock, [&] { return entry->is_finished || is_stopping_; });
  if (!entry->is_finished) return nullptr;
  if (const auto again = entries_.find({key.epoch, key.sample, sample});
      again != entries_.end() && again->second == entry) {
    held_bytes_ -= entry->clips->bytes;
    entries_.erase(again);
  }
  changed_.notify_all();
  return entry->clips;
}

std::string ClipAhead::explain() const {
  return "the bytes of up to " + std::to_string(kMostClips) + " samples with clips are fetched ahead, " +
         std::to_string(kThreads) + " at a time";
}

void ClipAhead::plan_next_epoch(std::unique_lock<std::mutex>& lock) {
  const FetchOrder::PlannedEpoch ended = order_.ended();
  is_planning_ = true;
  lock.unlock();
  FetchOrder::PlannedEpoch following{ended.epoch + 1,
                                     std::make_shared<const plan::Plan>(whole_epoch(plan_, ended.epoch + 1))};
  lock.lock();
  is_planning_ = false;
  order_.follow(ended, following);
  changed_.notify_all();
}

void ClipAhead::work() {
  FieldScratch scratch;
  for (const auto& path : recipe_->paths) path->add_scratch(scratch);
  scratch.connect();
  memory::Record record;
  record.most_bytes = memory::sample_limit(plan_.memory_budget);
  record.defers_audio = record.defers_videos = true;
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    if (!is_planning_ && order_.needs_next_epoch()) {
      plan_next_epoch(lock);
      continue;
    }
    const auto next = has_room() ? order_.next_row() : std::nullopt;
    if (!next) {
      changed_.wait(lock);
      continue;
    }
    const auto entry = std::make_shared<Entry>();
    const Name name{next->epoch, next->draw, next->sample};
    if (!entries_.emplace(name, entry).second) continue;
    lock.unlock();
    auto clips = std::make_shared<FetchedClips>();
    clips->videos.resize(paths_.size());
    if (recipe_->records->read(next->sample, record)) {
      const base::SampleKey key{plan_.order.seed, next->epoch, next->draw};
      for (std::size_t field = 0; field < paths_.size(); ++field)
        if (paths_[field] != nullptr && !record.fields[field].absent) {
          clips->videos[field] = paths_[field]->fetch(record.fields[field], key, scratch);
          if (clips->videos[field]) clips->bytes += clips->videos[field]->bytes();
        }
    }
    lock.lock();
    entry->clips = std::move(clips);
    entry->is_finished = true;
    if (const auto found = entries_.find(name); found != entries_.end() && found->second == entry)
      held_bytes_ += entry->clips->bytes;
    finished_.notify_all();
  }
}

}  // namespace feedline::pipeline
