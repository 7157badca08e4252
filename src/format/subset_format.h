// SPDX-License-Identifier: Apache-2.0
#pragma once

// Some samples of a format, in any order: a format of the kind that it is, which reads them from there.

#include <cstdint>
#include <memory>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Sample i is that of `format` at indices[i]; 8 bytes are kept for each. Where the indexes ascend, the shards are those
// of `format` that have a sample left. kConfig: no index, or one that is out of range.
Result<std::shared_ptr<const Format>> subset(std::shared_ptr<const Format> format, std::vector<std::uint64_t> indices);

}  // namespace feedline::format
