// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace feedline::plan {

// Cuts samples [0, n) at random into parts of counts[0], counts[1], ... of them, n being their sum: every sample is in
// exactly one part, and the indexes of a part ascend. The same on every machine.
// classes: what each sample is of; empty: all are alike. Where there are several, each class is shared out by the same
// ratio, to one sample with two parts, and to less than the number of parts with more.
// Requires: 1 to 65,535 parts; as many classes as samples, or none.
std::vector<std::vector<std::uint64_t>> split(std::span<const std::uint64_t> counts, std::uint64_t seed,
                                              std::span<const std::int64_t> classes = {});

}  // namespace feedline::plan
