// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace feedline::plan {

// Divides the samples [0, n) at random into parts of counts[0], counts[1], ... samples. The sum of the counts is n, so
// every sample is in exactly one part. The indices of a part ascend. The result is the same on every machine. classes:
// the class of each sample; empty if there are none. Each class is divided in the same ratio: two parts are exact to
// within one sample, and more parts to within fewer samples than there are parts. Requires: 1 to 65,535 parts, and as
// many classes as samples, or none.
std::vector<std::vector<std::uint64_t>> split(std::span<const std::uint64_t> counts, std::uint64_t seed,
                                              std::span<const std::int64_t> classes = {});

}  // namespace feedline::plan
