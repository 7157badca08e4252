// SPDX-License-Identifier: Apache-2.0
#include "base/gather_rows.h"

#include <algorithm>
#include <cstring>

namespace feedline::base {
namespace {

// The rows of a shuffled batch are not in any CPU cache, and a core handles about sixteen cache misses at a time. The
// core's out-of-order window reaches only a few rows ahead, so short rows are prefetched sixteen rows ahead. Long rows
// consist of many sequential lines that the hardware prefetches, so only their first line is prefetched, and only eight
// rows ahead.
constexpr std::size_t kLine = 64;
constexpr std::size_t ahead_of(std::size_t bytes) { return bytes <= kLine ? 16 : 8; }

// `kBytes`: a row size known at compile time, so that the copy uses a few registers and no call; 0 for any size.
template <std::size_t kBytes>
void gather(const Rows& rows, std::span<const std::uint64_t> indices, std::byte* out) {
  const std::size_t bytes = kBytes != 0 ? kBytes : rows.bytes;
  const std::size_t ahead = ahead_of(bytes);
  const auto row = [&](std::size_t i) { return rows.data + static_cast<std::ptrdiff_t>(indices[i]) * rows.stride; };
  for (std::size_t i = 0; i < std::min(ahead, indices.size()); ++i) __builtin_prefetch(row(i));
  for (std::size_t i = 0; i < indices.size(); ++i, out += bytes) {
    if (i + ahead < indices.size()) __builtin_prefetch(row(i + ahead));
    std::memcpy(out, row(i), bytes);
  }
}

}  // namespace

void gather_rows(const Rows& rows, std::span<const std::uint64_t> indices, std::byte* out) {
  switch (rows.bytes) {
    case 0:
      return;
    case 4:
      return gather<4>(rows, indices, out);
    case 8:
      return gather<8>(rows, indices, out);
    case 16:
      return gather<16>(rows, indices, out);
    case 32:
      return gather<32>(rows, indices, out);
    case 64:
      return gather<64>(rows, indices, out);
    case 128:
      return gather<128>(rows, indices, out);
    default:
      return gather<0>(rows, indices, out);
  }
}

}  // namespace feedline::base
