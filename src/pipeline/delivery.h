// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the consumer has got: batches handed over, bad samples met, how much of the epoch that makes, and since when it
// waits for the next one.

#include <cstdint>
#include <optional>

#include "feedline/device.h"
#include "feedline/loader.h"
#include "pipeline/epoch.h"
#include "pipeline/pipeline_plan.h"

namespace feedline::pipeline {

// Not thread-safe: under the pipeline's lock, as any thread may ask what was delivered, but for hand_over(), which the
// consumer calls without it. Nothing is allocated under it: what is known of bad samples comes in lists (BadEntry) and
// goes into another one. The policy outlives it.
class Delivery {
 public:
  Delivery(const BadSamplePolicy& policy, const DevicePlace& device) : policy_(policy), device_(device) {
    position_.delivered.reserve(kUsuallyAhead);
  }
  static constexpr std::size_t kUsuallyAhead = 256;  // spans of positions; more take memory under the lock

  void begin(const EpochStart& start, std::uint64_t now_ns);

  // The consumer asks for a batch, and waits until note() has one for it, or an error.
  void wait(std::uint64_t now_ns) {
    if (waiting_ns_ == 0) waiting_ns_ = now_ns;
  }
  std::uint64_t waiting_since() const { return waiting_ns_; }  // 0: it has not asked since
  // What a slot has for the consumer.
  enum class Noted : std::uint8_t {
    kBatch,       // it is counted, and to be handed over
    kNothing,     // it holds no row: refills of others have taken it over
    kBad,         // the error of its first bad row, as the policy is to raise
    kUnready,     // why it could not be made ready
    kOverBudget,  // its bad samples are more than the budget allows, and the epoch ends
  };
  // Notes a slot that was taken out of its epoch, its bad samples with it.
  Noted note(const Epoch& epoch, Slot& slot, std::uint64_t now_ns);
  // The batch of the slot that was noted last, with its number; it may still be on its way to the device. An error:
  // what was noted instead; or, of kBatch, it is known that it will not arrive: take_back() it then.
  Result<void> hand_over(Slot& slot, Noted noted, std::uint64_t index, Batch& out) const;
  void take_back(std::uint64_t rows) { --batches_, samples_ -= rows; }

  const EpochStart& position() const { return position_; }
  std::optional<std::uint64_t> last_batch() const { return last_batch_; }  // of the epoch; nullopt: none was delivered
  // Only ever longer: between two of them that were seen nothing changes, with the lock or without.
  const BadEntries& bad() const { return bad_; }
  std::uint64_t batches() const { return batches_; }
  std::uint64_t first_ns() const { return first_ns_; }  // of the first epoch's begin; 0: there was none
  std::uint64_t last_ns() const { return last_ns_; }    // when a slot was noted last
  // running: the epoch is not over, and its time goes on.
  void add_to(LoaderStats& stats, bool running, std::uint64_t now_ns) const;

 private:
  const BadSamplePolicy& policy_;
  const DevicePlace device_;
  EpochStart position_;
  std::optional<std::uint64_t> last_batch_;
  BadEntries bad_;
  std::uint64_t epoch_bad_ = 0;  // bad samples delivered in this epoch
  std::uint64_t batches_ = 0, samples_ = 0;
  std::uint64_t first_ns_ = 0, last_ns_ = 0;
  std::uint64_t waiting_ns_ = 0;
};

}  // namespace feedline::pipeline
