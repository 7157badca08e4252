// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "plan/order.h"

namespace feedline::plan {

// Mixes datasets of these sizes by weight, as mix() does. kConfig: invalid weights, or an epoch that is empty or too
// long.
Result<std::shared_ptr<const Mixture>> make_mixture(const std::vector<std::uint64_t>& sizes, const MixOptions& options);

}  // namespace feedline::plan
