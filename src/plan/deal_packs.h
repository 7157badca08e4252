// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "feedline/packing.h"

namespace feedline::plan {

// Returns the cost of a pack: the sum of the squared lengths of its pieces, to which the time of attention is
// proportional.
double attention_cost(std::span<const PackPiece> pieces);

// Distributes the packs of a global batch to ranks so that the ranks' costs differ little: the most expensive pack
// first, each to the rank with the least cost that has room. Returns the rank of each pack. rows: the number of packs
// of each rank. Requires: the sum of `rows` is the number of packs.
std::vector<std::uint64_t> deal_packs(std::span<const double> costs, std::span<const std::uint64_t> rows);

}  // namespace feedline::plan
