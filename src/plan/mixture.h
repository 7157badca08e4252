// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "plan/order.h"

namespace feedline::plan {

// Mixes datasets of these sizes by weight, like mix(). kConfig: invalid weights, or an epoch that is empty or too long.
Result<std::shared_ptr<const Mixture>> make_mixture(const std::vector<std::uint64_t>& sizes, const MixOptions& options);

// Returns the same mixture with other weights from `epoch` on; the passes over each dataset continue. kConfig: invalid
// weights.
Result<std::shared_ptr<const Mixture>> reweighted(const Mixture& mixture, const std::vector<double>& weights,
                                                  std::uint64_t epoch);

}  // namespace feedline::plan
