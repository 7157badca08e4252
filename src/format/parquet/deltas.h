// SPDX-License-Identifier: Apache-2.0
#pragma once

// Integers as differences (DELTA_BINARY_PACKED).
//
//     varint values of a block, varint parts of a block, varint values in all, zigzag the first one
//     block  zigzag the least difference; a byte per part: bits of a value; per part its values, what is over the least

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace feedline::format {

// All of them, taken off the front of `bytes`. nullopt: they do not fit, or are more than `most`.
std::optional<std::vector<std::uint64_t>> take_deltas(std::span<const std::byte>& bytes, std::uint64_t most);

}  // namespace feedline::format
