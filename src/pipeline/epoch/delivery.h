// SPDX-License-Identifier: Apache-2.0
#pragma once

// The consumer's progress: delivered batches, bad samples, the position in the epoch, and the start of the current
// wait.

#include <cstdint>
#include <optional>

#include "feedline/device.h"
#include "feedline/loader.h"
#include "pipeline/epoch/epoch.h"
#include "pipeline/planning/pipeline_plan.h"

namespace feedline::pipeline {

// Not thread-safe: the pipeline's lock guards it, because any thread may query the progress. Only hand_over() is called
// without the lock, by the consumer. This class does not allocate under the lock: lists of bad samples (BadEntry) are
// spliced into another list. The policy must outlive this object.
class Delivery {
 public:
  Delivery(const BadSamplePolicy& policy, const DeviceLocation& device) : policy_(policy), device_(device) {
    position_.delivered.reserve(kUsuallyAhead);
  }
  static constexpr std::size_t kUsuallyAhead = 256;  // reserved position ranges; more allocate under the lock

  void begin(const EpochStart& start, std::uint64_t now_ns);

  // Records the start of the consumer's wait, which ends when note() has a batch or an error.
  void wait(std::uint64_t now_ns) {
    if (waiting_ns_ == 0) waiting_ns_ = now_ns;
  }
  std::uint64_t waiting_since() const { return waiting_ns_; }  // 0 if the consumer is not waiting
  // The result of a slot, from the consumer's point of view.
  enum class Noted : std::uint8_t {
    kBatch,       // counted, and to be delivered
    kNothing,     // no rows are left: refills of other batches used them
    kBad,         // the first bad row's error, which the policy raises
    kUnready,     // the error of make_ready()
    kOverBudget,  // more bad samples than the budget allows; the epoch ends
  };
  // Records a slot removed from its epoch, and its bad samples.
  Noted note(const Epoch& epoch, Slot& slot, std::uint64_t now_ns);
  // Returns the batch of the slot that was noted last, with its number; the transfer to the device may still be in
  // progress. If an error was noted, returns that error. For kBatch, returns an error if the transfer failed; the
  // caller must then call take_back().
  Result<void> hand_over(Slot& slot, Noted noted, std::uint64_t index, Batch& out) const;
  void take_back(std::uint64_t rows) { --batches_, samples_ -= rows; }

  const EpochStart& position() const { return position_; }
  std::optional<std::uint64_t> last_batch() const {
    return last_batch_;
  }  // in the epoch; nullopt if none was
     // delivered
  // Entries are only appended; existing ones never change, with or without the lock.
  const BadEntries& bad() const { return bad_; }
  std::uint64_t batches() const { return batches_; }
  std::uint64_t first_ns() const { return first_ns_; }  // start of the first epoch; 0 if none has started
  std::uint64_t last_ns() const { return last_ns_; }    // time of the last note()
  // running: the epoch is still running, so its time up to now_ns is included.
  void add_to(LoaderStats& stats, bool running, std::uint64_t now_ns) const;

 private:
  const BadSamplePolicy& policy_;
  const DeviceLocation device_;
  EpochStart position_;
  std::optional<std::uint64_t> last_batch_;
  BadEntries bad_;
  std::uint64_t epoch_bad_ = 0;  // bad samples delivered in this epoch
  std::uint64_t batches_ = 0, samples_ = 0;
  std::uint64_t first_ns_ = 0, last_ns_ = 0;
  std::uint64_t waiting_ns_ = 0;
};

}  // namespace feedline::pipeline
