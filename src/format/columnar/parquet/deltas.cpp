// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/deltas.h"

#include <algorithm>

#include "format/columnar/parquet/runs.h"

namespace feedline::format {
namespace {

std::uint64_t from_zigzag(std::uint64_t value) { return value >> 1 ^ (~(value & 1) + 1); }

}  // namespace

std::optional<std::vector<std::uint64_t>> take_deltas(std::span<const std::byte>& bytes, std::uint64_t most) {
  const auto block = take_varint_of(bytes), parts = take_varint_of(bytes), count = take_varint_of(bytes),
             first = take_varint_of(bytes);
  constexpr std::uint64_t kMostInBlock = 1 << 20;
  if (!block || !parts || !count || !first || *count > most || *parts == 0 || *block == 0 || *block > kMostInBlock ||
      *block % *parts != 0 || *block / *parts % 8 != 0)
    return {};
  std::vector<std::uint64_t> values;
  if (*count == 0) return values;
  std::uint64_t value = from_zigzag(*first);
  values.push_back(value);
  const std::uint64_t in_part = *block / *parts;
  while (values.size() < *count) {
    const auto least = take_varint_of(bytes);
    if (!least || bytes.size() < *parts) return {};
    const auto widths = bytes.first(*parts);
    bytes = bytes.subspan(*parts);
    for (std::uint64_t part = 0; part < *parts && values.size() < *count; ++part) {
      const auto bits = std::to_integer<unsigned>(widths[part]);
      if (bits > 64 || bytes.size() < in_part * bits / 8) return {};
      const auto packed = bytes.first(in_part * bits / 8);
      bytes = bytes.subspan(packed.size());
      for (std::uint64_t i = 0; i < in_part && values.size() < *count; ++i) {
        value += from_zigzag(*least) + (bits == 0 ? 0 : packed_at(packed, i, bits));
        values.push_back(value);
      }
    }
  }
  return values;
}

}  // namespace feedline::format
