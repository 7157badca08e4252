// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fetches the bytes of the next clips of the plan from remote storage while threads decode: several threads choose the
// frames of a sample as the thread that delivers it will, and read the ranges of their packets. If bytes are
// missing, the thread that decodes reads them itself; errors of fetching are ignored, as that read reports them.

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "base/test_conditions.h"
#include "base/thread.h"
#include "pipeline/media/fetched_video.h"
#include "pipeline/prefetch/fetch_order.h"
#include "pipeline/sample/clip_reader.h"
#include "pipeline/sample/recipe.h"
#include "pipeline/sample/record_reader.h"
#include "telemetry/held_bytes.h"

namespace feedline::pipeline {

class ClipPath;
struct PipelinePlan;

// Any thread may call take(); only the pipeline's owner may call begin() and stop().
class ClipAhead final : public ClipReader {
 public:
  // Returns nullptr if the recipe has no clips, the storage is not remote, or the caller passes the order. The plan
  // must outlive the result.
  static std::unique_ptr<ClipAhead> make(std::shared_ptr<const Recipe> recipe, const PipelinePlan& plan,
                                         base::ReadAheadMode mode);
  ~ClipAhead() override;  // calls stop()

  // goes_on: another epoch is likely to follow this one.
  void begin(bool goes_on);
  // Ends the threads after their reads in flight, without waiting. take() returns nothing from now on.
  void cancel();
  void stop();  // cancels and joins
  std::shared_ptr<const FetchedClips> take(const PlanRow& row, std::uint64_t sample,
                                           const base::SampleKey& key) override;
  std::string explain() const;

 private:
  using Name = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;  // epoch, draw, sample
  struct Entry {
    std::shared_ptr<FetchedClips> clips;
    bool is_finished = false;
  };
  ClipAhead(std::shared_ptr<const Recipe> recipe, const PipelinePlan& plan);
  void work();
  void plan_next_epoch(std::unique_lock<std::mutex>& lock);
  bool has_room() const;
  void start_threads();

  const std::shared_ptr<const Recipe> recipe_;
  const PipelinePlan& plan_;
  std::vector<const ClipPath*> paths_;  // by field; nullptr: not a clip

  std::mutex mutex_;
  std::condition_variable changed_, finished_;
  // guarded by mutex_
  FetchOrder order_;
  std::map<Name, std::shared_ptr<Entry>> entries_;
  std::uint64_t held_bytes_ = 0;
  bool is_planning_ = false, is_stopping_ = false;
  std::vector<base::Thread> threads_;
};

}  // namespace feedline::pipeline
