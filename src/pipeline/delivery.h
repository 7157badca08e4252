// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the consumer has got: batches handed over, bad samples met, how much of the epoch that makes, and since when it
// waits for the next one.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "feedline/device.h"
#include "feedline/loader.h"
#include "pipeline/epoch.h"
#include "pipeline/pipeline_plan.h"

namespace feedline::pipeline {

// Not thread-safe: under the pipeline's lock, as any thread may ask what was delivered, but for hand_over(), which the
// consumer calls without it. The policy outlives it.
class Delivery {
 public:
  Delivery(const BadSamplePolicy& policy, const DevicePlace& device) : policy_(policy), device_(device) {
    position_.delivered.reserve(kUsuallyAhead);
  }
  static constexpr std::size_t kUsuallyAhead = 256;  // spans of positions; more take memory under the lock

  void begin(const EpochStart& start, std::uint64_t now_ns);

  // The consumer asks for a batch, and waits until count() gives it one, or an error.
  void wait(std::uint64_t now_ns) {
    if (waiting_ns_ == 0) waiting_ns_ = now_ns;
  }
  std::uint64_t waiting_since() const { return waiting_ns_; }  // 0: it has not asked since
  // Notes a slot that was taken out of its epoch, its bad samples with it. An error: they are more than the budget
  // allows, and the epoch ends.
  Result<void> note(const Epoch& epoch, const Slot& slot, std::uint64_t now_ns);
  // Counts a slot that was noted. kBatch: it is to be handed over. kPending: it holds no row, refills of others have
  // taken it over. An error: of its first bad row, where the policy is to raise, or why it is not ready.
  Result<Loader::Polled> count(const Epoch& epoch, const Slot& slot);
  // The batch of a slot that was counted, with its number; it may still be on its way to the device. An error: it is
  // known that it will not arrive; take_back() it then.
  Result<void> hand_over(Slot& slot, std::uint64_t index, Batch& out) const;
  void take_back(std::uint64_t rows) { --batches_, samples_ -= rows; }

  const EpochStart& position() const { return position_; }
  std::optional<std::uint64_t> last_batch() const { return last_batch_; }  // of the epoch; nullopt: none was delivered
  const std::vector<std::shared_ptr<const BadSample>>& bad() const { return bad_; }
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
  std::vector<std::shared_ptr<const BadSample>> bad_;
  std::uint64_t epoch_bad_ = 0;  // bad samples delivered in this epoch
  std::uint64_t batches_ = 0, samples_ = 0;
  std::uint64_t first_ns_ = 0, last_ns_ = 0;
  std::uint64_t waiting_ns_ = 0;
};

}  // namespace feedline::pipeline
