// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "feedline/loader.h"

namespace feedline::pipeline {

// What happens to a bad sample, in one place. Pure, so that the outcome does not depend on which thread met it when.
//
//   raise     the batch is lost and its first error, in row order, is what next() returns.
//   replace   another sample is drawn from (seed, epoch, sample, attempt), at once and by the same thread.
//   skip      the sample is left out, and its row is refilled with the last sample of the epoch's order that has not
//             been used so; the order then ends one sample earlier. Refills are handed out in batch order, which is
//             why they do not depend on threads. A refill may be loaded twice (once in a batch near the end that is
//             cut off again afterwards); it is delivered once.
//
// Where skip cannot be, the plan has replace (PipelinePlan::on_error_reason).
class BadSamplePolicy {
 public:
  BadSamplePolicy(OnError on_error, std::uint64_t error_budget) : on_error_(on_error), error_budget_(error_budget) {}

  OnError on_error() const { return on_error_; }
  // The substitute for `key.sample` at the given attempt; nullopt: give up and raise.
  std::optional<std::uint64_t> substitute(const base::SampleKey& key, std::uint64_t size, std::uint32_t attempt) const;
  // Has an epoch with this many bad samples to stop?
  bool over_budget(std::uint64_t bad_samples) const;
  Error budget_error(const Error& last) const;

 private:
  OnError on_error_;
  std::uint64_t error_budget_;
};

}  // namespace feedline::pipeline
