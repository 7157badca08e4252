// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes integers stored as differences (DELTA_BINARY_PACKED).
//
//     varint values per block, varint parts per block, varint number of values, zigzag first value
//     block  zigzag smallest difference; per part, a byte with the bit width; per part, its differences minus the smallest

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace feedline::format {

// Decodes all integers and removes them from the front of `bytes`. Returns nullopt if the integers extend past the end
// of `bytes`, or if there are more than `most` integers.
std::optional<std::vector<std::uint64_t>> take_deltas(std::span<const std::byte>& bytes, std::uint64_t most);

}  // namespace feedline::format
