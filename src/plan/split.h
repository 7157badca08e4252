// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace feedline::plan {

// Divides samples [0, n) at random into parts of counts[0], counts[1], ... samples, whose sum is n: every sample is in
// exactly one part, and the indexes of a part ascend. The same on every machine.
// classes: the class of each sample; empty if there are none. Each class is divided by the same ratio, to within one
// sample for two parts, and fewer than the number of parts for more.
// Requires: 1 to 65,535 parts; as many classes as samples, or none.
std::vector<std::vector<std::uint64_t>> split(std::span<const std::uint64_t> counts, std::uint64_t seed,
                                              std::span<const std::int64_t> classes = {});

}  // namespace feedline::plan
