// SPDX-License-Identifier: Apache-2.0
#pragma once

// The header of NumPy's .npy files, versions 1 to 3.
//
//     0   6  "\x93NUMPY"
//     6   2  version: major, minor
//     8   2  bytes of the header, little-endian; 4 of them from version 2 on
//            the header: a Python dict of descr, fortran_order and shape, padded with spaces up to a newline
//            the elements

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::memory {

struct NpyHeader {
  ArraySpec spec;
  std::string descr;        // the dtype as in the file: "<f4"
  bool is_swapped = false;  // its elements are big-endian
  bool is_fortran = false;  // the first extent varies fastest
  std::size_t bytes = 0;    // before the elements

  // Returns the size of all elements. Cannot overflow for a header that was read successfully.
  std::uint64_t data_bytes() const;
};

// The number of bytes at the start of a file that are sufficient for any header.
inline constexpr std::size_t kMostNpyHeader = 10'012;

// Reads a header from a file's first bytes: the whole file, or kMostNpyHeader bytes. kData: not an .npy file, damaged,
// truncated within its header, or an array that batches do not support (objects, an unsupported dtype, or too many
// dimensions). The message starts with "npy: " and suggests a fix.
Result<NpyHeader> read_npy_header(std::span<const std::byte> front);
bool is_npy(std::span<const std::byte> front);

// Returns a header of version 1 for an array in C order, aligned as in NumPy.
std::string npy_header(const ArraySpec& spec);
// Returns a complete file. Requires: `data` contains the elements of `spec` in C order.
std::vector<std::byte> npy_file(const ArraySpec& spec, std::span<const std::byte> data);

}  // namespace feedline::memory
