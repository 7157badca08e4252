// SPDX-License-Identifier: Apache-2.0
#pragma once

// Selects the samples of an epoch, for loaders that do not deliver every sample exactly once.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline {

// Immutable and thread-safe. A loader computes the order of each epoch from the sampling, the seed and the epoch
// number.
class Sampling {
 public:
  // Draws as many samples as the dataset has, with replacement and with probabilities proportional to `weights`, one
  // weight per sample. A sample drawn twice in an epoch gets different random operations. Uses 8 bytes of memory per
  // weight. Fails with kConfig if a weight is negative or not finite, or if all weights are 0.
  static Result<std::shared_ptr<const Sampling>> by_weight(const std::vector<double>& weights);
  // Draws as many samples from each class as the smallest class has, without replacement, with a new draw in every
  // epoch. `classes` has one class per sample in the dataset. Uses 8 bytes of memory per sample. Fails with kConfig if
  // `classes` is empty.
  static Result<std::shared_ptr<const Sampling>> undersample(const std::vector<std::int64_t>& classes);
  // Selects the samples with these indices in this order in every epoch. Indices may be repeated. Uses 8 or 16 bytes of
  // memory per index. `samples` is the size of the dataset. If `indices` are only one rank's part of an order,
  // `fingerprint` identifies the whole order. Fails with kConfig if there are no indices or an index is out of range.
  static Result<std::shared_ptr<const Sampling>> in_order(std::vector<std::uint64_t> indices, std::uint64_t samples,
                                                          std::optional<std::uint64_t> fingerprint = {});

  virtual ~Sampling() = default;
  Sampling(const Sampling&) = delete;
  Sampling& operator=(const Sampling&) = delete;

  virtual std::uint64_t samples() const = 0;    // of the dataset that it is for
  virtual std::uint64_t positions() const = 0;  // samples of an epoch
  // Identifies the selection, so that a loader can check that a state was saved with the same selection. Never 0.
  virtual std::uint64_t fingerprint() const = 0;
  virtual std::string explain() const = 0;

 protected:
  Sampling() = default;
};

}  // namespace feedline
