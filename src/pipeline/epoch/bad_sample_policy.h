// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "feedline/loader.h"

namespace feedline::pipeline {

// Determines how a bad sample is handled. The policy is stateless, so the result does not depend on the timing of
// threads.
//
// - raise: the batch is dropped, and next() returns its first error in row order.
// - replace: the thread immediately draws another sample from (seed, epoch, sample, attempt).
// - skip: the sample is dropped, and its row is refilled with the last unused sample of the epoch's order, which
//   therefore ends one sample earlier. Refills are assigned in batch order, so they do not depend on the timing of
//   threads. A refill may be loaded twice (once in a batch near the end that is truncated later), but is delivered only
//   once.
//
// If skip is not possible, the plan uses replace (PipelinePlan::on_error_reason).
class BadSamplePolicy {
 public:
  BadSamplePolicy(OnError on_error, std::uint64_t error_budget) : on_error_(on_error), error_budget_(error_budget) {}

  OnError on_error() const { return on_error_; }
  // Returns the substitute for `key.sample` at the given attempt, a number below `size`; nullopt to give up and raise
  // the error.
  std::optional<std::uint64_t> substitute(const base::SampleKey& key, std::uint64_t size, std::uint32_t attempt) const;
  // Returns whether an epoch with this many bad samples must stop.
  bool over_budget(std::uint64_t bad_samples) const;
  Error budget_error(const Error& last) const;

 private:
  OnError on_error_;
  std::uint64_t error_budget_;
};

}  // namespace feedline::pipeline
