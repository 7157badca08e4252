// SPDX-License-Identifier: Apache-2.0
#pragma once

// A subset of the samples of a format, in any order, as a format of the same kind that reads from the original.

#include <cstdint>
#include <memory>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Sample i is sample indices[i] of `format`; each index takes 8 bytes. If the indices ascend, the shards are those of
// `format` with at least one sample in the subset. kConfig: no indices, or one out of range.
Result<std::shared_ptr<const Format>> subset(std::shared_ptr<const Format> format, std::vector<std::uint64_t> indices);

}  // namespace feedline::format
