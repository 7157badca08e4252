// SPDX-License-Identifier: Apache-2.0
#pragma once

// What stands before the elements in NumPy's .npy files, of versions 1 to 3.
//
//     0   6  "\x93NUMPY"
//     6   2  version: major, minor
//     8   2  bytes of the header, little-endian; 4 of them from version 2 on
//            the header: a Python dict of descr, fortran_order and shape, filled with spaces up to a newline
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
  std::string descr;        // as the file says the dtype: "<f4"
  bool is_swapped = false;  // its elements are big-endian
  bool is_fortran = false;  // the first extent runs quickest
  std::size_t bytes = 0;    // before the elements

  // Of all elements. Those of a header that was read are no more than a number can say.
  std::uint64_t data_bytes() const;
};

// What a reader has to have of a file's front, whatever it holds.
inline constexpr std::size_t kMostNpyHeader = 10'012;

// From a file's first bytes: all, or kMostNpyHeader. kData: not such a file, damaged, cut within its header, or an
// array that no batch can hold: of objects, of a dtype that Feedline does not have or of too many extents. The message
// says what to do, behind "npy: ".
Result<NpyHeader> read_npy_header(std::span<const std::byte> front);
bool is_npy(std::span<const std::byte> front);

// Before the elements of such an array, in C order: of version 1, and aligned as NumPy has it.
std::string npy_header(const ArraySpec& spec);
// A whole file. Requires: `data` are the elements of `spec`, in C order.
std::vector<std::byte> npy_file(const ArraySpec& spec, std::span<const std::byte> data);

}  // namespace feedline::memory
