// SPDX-License-Identifier: Apache-2.0
#include "plan/mixture.h"

#include <cmath>
#include <string>

#include "plan/mixed_order.h"

namespace feedline::plan {

Result<std::shared_ptr<const Mixture>> make_mixture(const std::vector<std::uint64_t>& sizes,
                                                    const MixOptions& options) {
  auto mixture = std::make_shared<Mixture>();
  if (!options.weights.empty() && options.weights.size() != sizes.size())
    return config_error("mix: " + std::to_string(sizes.size()) + " datasets need the same number of weights, got " +
                        std::to_string(options.weights.size()));
  bool positive = false;
  for (const double weight : options.weights) {
    if (!std::isfinite(weight) || weight < 0) return config_error("mix: weights must be finite and not negative");
    positive = positive || weight > 0;
  }
  if (!options.weights.empty() && !positive) return config_error("mix: all weights are 0");
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    mixture->parts.push_back({sizes[i], options.weights.empty() ? static_cast<double>(sizes[i]) : options.weights[i]});
    total += sizes[i];
  }
  switch (options.until) {
    case MixUntil::kSamples:
      mixture->samples = options.samples > 0 ? options.samples : total;
      break;
    case MixUntil::kFirst:
      mixture->samples = positions_until_first(mixture->parts);
      break;
    case MixUntil::kLast:
      mixture->samples = positions_until_last(mixture->parts);
      break;
  }
  if (mixture->samples > kMostPositions)
    return config_error("mix: an epoch would have more than 2^48 samples: the weights and sizes are too far apart");
  if (mixture->samples == 0)
    return config_error("mix: an epoch would have no samples: the dataset that ends first is too small for its weight");
  return mixture;
}

}  // namespace feedline::plan
