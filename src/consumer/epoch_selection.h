// SPDX-License-Identifier: Apache-2.0
#pragma once

// The selection of samples of a loader's epochs: the current one, and the one set for the next epoch.
//
// Thread-safe, but only the consumer may call the functions that are not const.

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "feedline/loader.h"
#include "plan/order.h"

namespace feedline::consumer {

class EpochSelection {
 public:
  // current: nullptr if the selection never changes.
  EpochSelection(std::shared_ptr<plan::CurrentSelection> current, std::uint64_t samples, std::uint64_t world_size);

  // See Loader::set_sampling and Loader::set_mix_weights.
  Result<void> set_sampling(std::shared_ptr<const Sampling> sampling);
  Result<void> set_mix_weights(const std::vector<double>& weights);

  plan::Selection now() const;
  // Returns the selection of `epoch` if it begins next.
  plan::Selection next(std::uint64_t epoch) const;
  // Makes next(epoch) the current selection.
  void begin(std::uint64_t epoch);
  // Returns the selection that the state was taken with. kConfig: this loader has another one.
  Result<plan::Selection> taken_with(const LoaderState& state) const;
  // Makes it the current selection, and the next one if that was set to the same.
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
