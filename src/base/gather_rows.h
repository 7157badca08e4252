// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace feedline::base {

// Rows of `bytes` bytes each, `stride` bytes apart, starting at `data`, and accessed in random order.
struct Rows {
  const std::byte* data = nullptr;
  std::ptrdiff_t stride = 0;
  std::size_t bytes = 0;
};

// Copies the rows `indices` to `out`, contiguously. Requires: all indices are valid, and `out` does not overlap the
// rows.
void gather_rows(const Rows& rows, std::span<const std::uint64_t> indices, std::byte* out);

}  // namespace feedline::base
