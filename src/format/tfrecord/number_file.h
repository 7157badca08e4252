// SPDX-License-Identifier: Apache-2.0
#pragma once

// The numbers of features as .npy files of version 1 (drawn in memory/npy_header.h), with a header of one size.

#include <cstddef>
#include <cstdint>

#include "format/tfrecord/example.h"

namespace feedline::format {

inline constexpr std::size_t kNumberHeaderBytes = 128;

// float32 or int64 in rows.
struct NumberShape {
  ValueKind kind = ValueKind::kFloats;
  std::size_t dims = 1;  // 0: a single number; 1: rows of one; 2
  std::uint64_t rows = 0, columns = 1;

  std::uint64_t data_bytes() const { return rows * columns * (kind == ValueKind::kFloats ? 4 : 8); }
  std::uint64_t file_bytes() const { return kNumberHeaderBytes + data_bytes(); }
};

// Writes the header; the numbers come behind it. Requires: room for it.
void write_number_header(const NumberShape& shape, std::byte* out);

}  // namespace feedline::format
