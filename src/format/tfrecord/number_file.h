// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes the numbers of features as .npy files of version 1 (see memory/npy_header.h) with a header of fixed size.

#include <cstddef>
#include <cstdint>

#include "format/tfrecord/example.h"

namespace feedline::format {

inline constexpr std::size_t kNumberHeaderBytes = 128;

// The shape of the numbers. The dtype is float32 or int64.
struct NumberShape {
  ValueKind kind = ValueKind::kFloats;
  std::size_t dims = 1;  // number of dimensions: 0, 1 or 2
  std::uint64_t rows = 0, columns = 1;

  std::uint64_t data_bytes() const { return rows * columns * (kind == ValueKind::kFloats ? 4 : 8); }
  std::uint64_t file_bytes() const { return kNumberHeaderBytes + data_bytes(); }
};

// Writes the header, after which the numbers must follow. Requires: `out` has kNumberHeaderBytes bytes.
void write_number_header(const NumberShape& shape, std::byte* out);

}  // namespace feedline::format
