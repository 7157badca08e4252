// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sample selections for a loader's epochs: the current selection, and the selection set for the next epoch.
//
// Thread-safe, but only the consumer thread may call the non-const functions.

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "feedline/loader.h"
#include "plan/order.h"

namespace feedline::consumer {

class EpochSelection {
 public:
  // current: nullptr if the selection cannot change.
  EpochSelection(std::shared_ptr<plan::CurrentSelection> current, std::uint64_t samples, std::uint64_t world_size);

  // See Loader::set_sampling and Loader::set_mix_weights.
  Result<void> set_sampling(std::shared_ptr<const Sampling> sampling);
  Result<void> set_mix_weights(const std::vector<double>& weights);

  plan::Selection now() const;
  // Returns the selection that applies if `epoch` begins next.
  plan::Selection next(std::uint64_t epoch) const;
  // Makes next(epoch) the current selection.
  void begin(std::uint64_t epoch);
  // Returns the selection that was current when the state was saved. kConfig: this loader has another selection.
  Result<plan::Selection> taken_with(const LoaderState& state) const;
  // Makes `selection` the current selection, and drops the sampling set for the next epoch if it is the same.
  void resume(const plan::Selection& selection);

 private:
  struct Pending {
    std::shared_ptr<const Sampling> sampling;  // nullptr: unchanged
    std::vector<double> mix_weights;           // empty: unchanged
  };
  Pending pending() const;

  const std::shared_ptr<plan::CurrentSelection> current_;
  const std::shared_ptr<const plan::Mixture> mixture_;  // with the dataset's weights; nullptr if it is not a mixture
  const std::uint64_t samples_, world_size_;
  mutable std::mutex mutex_;
  Pending pending_;  // guarded by mutex_
};

// Adds the selection to a state.
void describe(const plan::Selection& selection, LoaderState& state);

}  // namespace feedline::consumer
