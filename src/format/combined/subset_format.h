// SPDX-License-Identifier: Apache-2.0
#pragma once

// A subset of the samples of a format, in any order. The subset is a format of the same kind, and reads from the
// original format.

#include <cstdint>
#include <memory>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Returns a format whose sample i is sample indices[i] of `format`. Uses 8 bytes of memory per index. If the indices
// are ascending, the subset has the shards of `format` that contain at least one of its samples. Fails with kConfig if
// there are no indices or one is out of range.
Result<std::shared_ptr<const Format>> subset(std::shared_ptr<const Format> format, std::vector<std::uint64_t> indices);

}  // namespace feedline::format
