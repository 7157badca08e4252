// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arrays in NumPy's .npy files; memory/npy_header.h describes the header.

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

// kData: not an .npy file, truncated, or an array that a batch cannot hold: of objects, big-endian, in Fortran order,
// with an unsupported dtype or too many dimensions. The message describes how to fix the array.
Result<NpyArray> read_npy(std::span<const std::byte> file);
bool is_npy(std::span<const std::byte> file);

// Writes an array as a version 1 file that read_npy() accepts, to a buffer whose memory is reused. Requires: the
// elements of such an array.
void write_npy(const ArraySpec& spec, std::span<const std::byte> data, std::vector<std::byte>& file);

}  // namespace feedline::decode
