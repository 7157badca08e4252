// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arrays in NumPy's .npy files, whose front is drawn in memory/npy_header.h.

#include <cstddef>
#include <span>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::decode {

struct NpyArray {
  ArraySpec spec;
  std::span<const std::byte> data;  // C order; into the file's bytes, so maybe unaligned
};

// kData: not such a file, cut short, or an array that a batch cannot hold: of objects, big-endian, in Fortran order, of
// a dtype that Feedline does not have or of too many extents. The message says what to do.
Result<NpyArray> read_npy(std::span<const std::byte> file);
bool is_npy(std::span<const std::byte> file);

// The file of an array, of version 1, as read_npy() takes it, into a buffer whose memory is used again.
// Requires: the elements of such an array.
void write_npy(const ArraySpec& spec, std::span<const std::byte> data, std::vector<std::byte>& file);

}  // namespace feedline::decode
