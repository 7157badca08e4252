// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace feedline::base {

// Rows of `bytes` each, `stride` bytes apart starting at `data`, accessed in random order.
struct Rows {
  const std::byte* data = nullptr;
  std::ptrdiff_t stride = 0;
  std::size_t bytes = 0;
};

// Copies the rows `indices` to `out`, contiguously. Requires: all of them exist, and `out` does not overlap them.
void gather_rows(const Rows& rows, std::span<const std::uint64_t> indices, std::byte* out);

}  // namespace feedline::base
