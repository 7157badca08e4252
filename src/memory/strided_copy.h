// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "feedline/array.h"

namespace feedline::memory {

// Copies the elements of an N-D array, for any order of the axes: element (i, j, ...) is read from in + i *
// in_strides[0] + ... and written to out + i * out_strides[0] + .... Strides are in bytes and may be negative.
// Requires: at most Shape::kMaxDims axes, and `element` is 1, 2, 4 or 8 bytes.
void copy_strided(const std::byte* in, std::span<const std::ptrdiff_t> in_strides, std::byte* out,
                  std::span<const std::ptrdiff_t> out_strides, std::span<const std::int64_t> size, std::size_t element);

// Strides in bytes, one per axis.
using Strides = std::array<std::ptrdiff_t, Shape::kMaxDims>;
Strides c_strides(std::span<const std::int64_t> size, std::size_t element);        // the last axis varies fastest
Strides fortran_strides(std::span<const std::int64_t> size, std::size_t element);  // the first axis varies fastest

// Reverses the bytes of each element. Requires: as for copy_strided().
void swap_bytes(std::byte* data, std::size_t count, std::size_t element);

}  // namespace feedline::memory
