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
// Over several ranks skip would end a rank early and leave the others waiting in a collective, and of an order that the
// caller gives the end is not known: in both cases skip replaces, which keeps the number of batches.
class BadSamplePolicy {
 public:
  BadSamplePolicy(OnError on_error, std::uint64_t error_budget, bool may_refill);

  OnError action() const { return action_; }
  // The substitute for `key.sample` at the given attempt; nullopt: give up and raise.
  std::optional<std::uint64_t> substitute(const base::SampleKey& key, std::uint64_t size, std::uint32_t attempt) const;
  // Has an epoch with this many bad samples to stop?
  bool over_budget(std::uint64_t bad_samples) const;
  Error budget_error(const Error& last) const;

 private:
  OnError action_;
  std::uint64_t error_budget_;
};

}  // namespace feedline::pipeline
