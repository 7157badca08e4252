// SPDX-License-Identifier: Apache-2.0
#pragma once

// The compressions and predictors of TIFF that no library provides (TIFF 6.0, sections 9, 13 and 14; Adobe Photoshop
// TIFF Technical Note 3). Stateless and thread-safe, except for the table.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace feedline::decode {

// Decompresses LZW. Each thread reuses one table.
class LzwDecoder {
 public:
  // Returns the number of bytes written: up to the end of the data, or until `out` is full. nullopt: a code is invalid,
  // or the data has the older form, from before TIFF 6.0.
  std::optional<std::size_t> decode(std::span<const std::byte> in, std::span<std::byte> out);

 private:
  struct Entry {
    std::uint32_t at;  // its bytes in the output
    std::uint32_t bytes;
  };
  std::array<Entry, 4096> table_;
};

// Returns the number of bytes written: up to the end of the data, or until `out` is full. nullopt: the data ends inside
// a run.
std::optional<std::size_t> unpack_bits(std::span<const std::byte> in, std::span<std::byte> out);

// Reverses the byte order of each number of `bytes` bytes: 1, 2, 4 or 8.
void swap_bytes(std::span<std::byte> numbers, std::size_t bytes);
// Reverses predictor 2 in one row: each number is stored as its difference from the same channel of the pixel before.
void add_differences(std::span<std::byte> row, std::size_t bytes, std::size_t channels);
// Reverses predictor 3 in one row of floats: the differences are between bytes, of which the highest of all floats are
// stored first. room: as large as the row. The result has the machine's byte order.
void join_float_bytes(std::span<std::byte> row, std::size_t bytes, std::size_t channels, std::span<std::byte> room);

}  // namespace feedline::decode
