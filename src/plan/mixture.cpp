// SPDX-License-Identifier: Apache-2.0
#include "plan/mixture.h"

#include <string>

#include "plan/mixed_order.h"
#include "plan/weights.h"

namespace feedline::plan {
namespace {

Result<void> check(const std::string& where, const std::vector<double>& weights, std::size_t datasets) {
  if (weights.size() != datasets)
    return config_error(where + ": " + std::to_string(datasets) + " datasets need the same number of weights, got " +
                        std::to_string(weights.size()));
  return check_weights(where, "dataset", weights);
}

}  // namespace

Result<std::shared_ptr<const Mixture>> make_mixture(const std::vector<std::uint64_t>& sizes,
                                                    const MixOptions& options) {
  auto mixture = std::make_shared<Mixture>();
  if (!options.weights.empty()) FEEDLINE_CHECK_OK(check("mix", options.weights, sizes.size()));
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
    return config_error(
        "mix: an epoch would have more than 2^48 samples: the ratios of sizes to weights differ too much");
  if (mixture->samples == 0)
    return config_error("mix: an epoch would have no samples: the dataset that ends first is too small for its weight");
  return mixture;
}

Result<std::shared_ptr<const Mixture>> reweighted(const Mixture& mixture, const std::vector<double>& weights,
                                                  std::uint64_t epoch) {
  FEEDLINE_CHECK_OK(check("set_weights", weights, mixture.parts.size()));
  auto next = std::make_shared<Mixture>(mixture);
  next->used = used_before(mixture, epoch);
  next->since = epoch;
  for (std::size_t i = 0; i < weights.size(); ++i) next->parts[i].weight = weights[i];
  return next;
}

}  // namespace feedline::plan
