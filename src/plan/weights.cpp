// SPDX-License-Identifier: Apache-2.0
#include "plan/weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace feedline::plan {
namespace {

// Returns the shortest text that is read back as the same number.
std::string text_of(double value) {
  char digits[32];  // at most 24 are used
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

}  // namespace

Result<void> check_weights(const std::string& where, const std::string& of, const std::vector<double>& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (!std::isfinite(weights[i]) || weights[i] < 0)
      return config_error(where + ": weights must be finite and not negative, but the weight of " + of + " " +
                          std::to_string(i) + " is " + text_of(weights[i]));
  if (std::ranges::all_of(weights, [](double weight) { return weight == 0; }))
    return config_error(where + ": all weights are 0; at least one must be positive");
  return {};
}

}  // namespace feedline::plan
