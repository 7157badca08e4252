// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes small integers, which Parquet uses for levels and dictionary indices: runs of one value, and bit-packed
// groups of eight.
//
//     run     varint: twice its length; the value, in the smallest number of bytes for its bits
//     groups  varint: twice their number, plus 1; 8 values each, of `bits` bits, lowest bit first

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace feedline::format {

// Removes a varint of 7 bits per byte from the front; Returns nullopt if the varint is truncated or longer than 10
// bytes.
std::optional<std::uint64_t> take_varint_of(std::span<const std::byte>& bytes);

// Returns value i of a bit-packed array with `bits` bits per value. Requires: i is in bounds; bits <= 64.
std::uint64_t packed_at(std::span<const std::byte> bytes, std::uint64_t i, unsigned bits);

// Removes `count` values from the front of `bytes`. nullopt if there are fewer. Requires: bits <= 32.
std::optional<std::vector<std::uint32_t>> take_runs(std::span<const std::byte>& bytes, unsigned bits,
                                                    std::uint64_t count);

// Returns the number of bits that numbers up to `most` need.
unsigned bits_of(unsigned most);

}  // namespace feedline::format
