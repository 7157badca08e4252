// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/bad_sample_policy.h"

#include <string>

namespace feedline::pipeline {
namespace {

// The random streams of operations are numbered from 0; this number is far outside their range.
constexpr std::uint32_t kSubstituteStream = 0x5B5B5B5Bu;
// If half of all samples are bad, the probability of 32 bad substitutes in a row is one in 4 billion.
constexpr std::uint32_t kMaxAttempts = 32;

}  // namespace

std::optional<std::uint64_t> BadSamplePolicy::substitute(const base::SampleKey& key, std::uint64_t size,
                                                         std::uint32_t attempt) const {
  if (attempt >= kMaxAttempts) return std::nullopt;
  base::Random random(key, kSubstituteStream + attempt);
  const double position = random.uniform() * static_cast<double>(size);
  return std::min(static_cast<std::uint64_t>(position), size - 1);
}

bool BadSamplePolicy::over_budget(std::uint64_t bad_samples) const {
  return error_budget_ > 0 && bad_samples > error_budget_;
}

Error BadSamplePolicy::budget_error(const Error& last) const {
  Error error = last;
  error.what =
      "more bad samples than error_budget=" + std::to_string(error_budget_) + " allows; the last one: " + last.what;
  return error;
}

}  // namespace feedline::pipeline
