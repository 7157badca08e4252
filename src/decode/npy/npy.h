// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arrays in NumPy's .npy files; memory/npy_header.h parses the header.

#include <cstddef>
#include <span>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::decode {

struct NpyArray {
  ArraySpec spec;
  std::span<const std::byte> data;  // in C order; points into the file's bytes, so it may be unaligned
};

// kData: the file is not an .npy file, is truncated, or has an array that a batch cannot hold (objects, big-endian,
// Fortran order, an unsupported dtype, or too many dimensions). The message describes how to fix the array.
Result<NpyArray> read_npy(std::span<const std::byte> file);
bool is_npy(std::span<const std::byte> file);

// Writes an array as an .npy file of version 1, which read_npy() accepts, to a buffer whose memory is reused. Requires:
// read_npy() supports the array's dtype and shape.
void write_npy(const ArraySpec& spec, std::span<const std::byte> data, std::vector<std::byte>& file);

}  // namespace feedline::decode
