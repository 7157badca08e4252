// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small integers as Parquet keeps levels and indices of dictionaries: runs of one value, and groups of eight that are
// packed by the bit.
//
//     run     varint: twice its length; the value, in as many bytes as its bits need
//     groups  varint: twice their number, and 1; 8 values each, of `bits` bits, from the lowest bit on

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace feedline::format {

// A number of 7 bits a byte, taken off the front; nullopt: cut, or longer than 10 bytes.
std::optional<std::uint64_t> take_varint_of(std::span<const std::byte>& bytes);

// Value i of those that are packed with `bits` bits each. Requires: it is inside; bits <= 64.
std::uint64_t packed_at(std::span<const std::byte> bytes, std::uint64_t i, unsigned bits);

// `count` values, taken off the front of `bytes`. nullopt: there are fewer. Requires: bits <= 32.
std::optional<std::vector<std::uint32_t>> take_runs(std::span<const std::byte>& bytes, unsigned bits,
                                                    std::uint64_t count);

// How many bits the numbers up to `most` have.
unsigned bits_of(unsigned most);

}  // namespace feedline::format
