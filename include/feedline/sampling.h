// SPDX-License-Identifier: Apache-2.0
#pragma once

// Selects the samples of an epoch, for loaders that do not deliver every sample once.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline {

// Immutable and thread-safe. A loader makes the order of each epoch from it, the seed and the epoch's number.
class Sampling {
 public:
  // Draws as many samples as there are weights, with replacement and with probabilities proportional to the weights,
  // one per sample of the dataset. A sample drawn twice in an epoch gets different random operations. Stores 8 bytes
  // per weight. kConfig: a weight is negative or not finite, or all are 0.
  static Result<std::shared_ptr<const Sampling>> by_weight(const std::vector<double>& weights);
  // Draws from each class as many samples as the smallest class has, without replacement, others in every epoch.
  // classes: one per sample of the dataset. Stores 8 bytes per sample. kConfig: there are no classes.
  static Result<std::shared_ptr<const Sampling>> undersample(const std::vector<std::int64_t>& classes);
  // The samples with these indices in this order, the same in every epoch; an index may be repeated. Stores 8 or 16
  // bytes per index. samples: of the dataset. fingerprint: of the whole order, if `indices` are one rank's share.
  // kConfig: there are no indices, or one is out of range.
  static Result<std::shared_ptr<const Sampling>> in_order(std::vector<std::uint64_t> indices, std::uint64_t samples,
                                                          std::optional<std::uint64_t> fingerprint = {});

  virtual ~Sampling() = default;
  Sampling(const Sampling&) = delete;
  Sampling& operator=(const Sampling&) = delete;

  virtual std::uint64_t samples() const = 0;    // of the dataset that it is for
  virtual std::uint64_t positions() const = 0;  // samples of an epoch
  // Identifies the selection, to check that a state belongs to it. Never 0.
  virtual std::uint64_t fingerprint() const = 0;
  virtual std::string explain() const = 0;

 protected:
  Sampling() = default;
};

}  // namespace feedline
