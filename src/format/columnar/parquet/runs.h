// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes the small integers that Parquet uses for levels and dictionary indices: runs of equal values, and bit-packed
// groups of eight values.
//
//     run     varint: twice its length; the value, in the smallest number of bytes for its bits
//     groups  varint: twice their number, plus 1; 8 values each, of `bits` bits, lowest bit first

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace feedline::format {

// Decodes a varint with 7 bits per byte and removes it from the front of `bytes`. Returns nullopt if the varint is
// truncated or longer than 10 bytes.
std::optional<std::uint64_t> take_varint_of(std::span<const std::byte>& bytes);

// Returns value `i` of a bit-packed array with `bits` bits per value. Requires: `i` is in bounds, and bits <= 64.
std::uint64_t packed_at(std::span<const std::byte> bytes, std::uint64_t i, unsigned bits);

// Decodes `count` values and removes them from the front of `bytes`. Returns nullopt if `bytes` has fewer values.
// Requires: bits <= 32.
std::optional<std::vector<std::uint32_t>> take_runs(std::span<const std::byte>& bytes, unsigned bits,
                                                    std::uint64_t count);

// Returns the number of bits that numbers up to `most` need.
unsigned bits_of(unsigned most);

}  // namespace feedline::format
