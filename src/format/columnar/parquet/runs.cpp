// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/runs.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace feedline::format {

std::optional<std::uint64_t> take_varint_of(std::span<const std::byte>& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto next = std::to_integer<std::uint8_t>(bytes.front());
    bytes = bytes.subspan(1);
    value |= static_cast<std::uint64_t>(next & 0x7F) << shift;
    if (next < 0x80) return value;
  }
  return {};
}

std::uint64_t packed_at(std::span<const std::byte> bytes, std::uint64_t i, unsigned bits) {
  const std::uint64_t first = i * bits;
  std::uint64_t value = 0;
  const std::uint64_t begin = first / 8;
  const unsigned shift = first % 8;
  std::memcpy(&value, bytes.data() + begin, std::min<std::uint64_t>(sizeof value, bytes.size() - begin));
  value >>= shift;
  // values of more than 57 bits may extend into a ninth byte
  if (shift + bits > 64 && begin + 8 < bytes.size())
    value |= std::to_integer<std::uint64_t>(bytes[begin + 8]) << (64 - shift);
  return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

std::optional<std::vector<std::uint32_t>> take_runs(std::span<const std::byte>& bytes, unsigned bits,
                                                    std::uint64_t count) {
  std::vector<std::uint32_t> values;
  constexpr std::uint64_t kSure = 1 << 16;  // grows when more values arrive
  values.reserve(std::min(count, kSure));
  while (values.size() < count) {
    const auto head = take_varint_of(bytes);
    if (!head) return {};
    const std::uint64_t left = count - values.size(), size = *head >> 1;
    if ((*head & 1) == 0) {
      const std::size_t value_bytes = (bits + 7) / 8;
      if (bytes.size() < value_bytes || size == 0) return {};
      std::uint32_t value = 0;
      std::memcpy(&value, bytes.data(), value_bytes);
      bytes = bytes.subspan(value_bytes);
      values.insert(values.end(), std::min(size, left), value);
      continue;
    }
    if (size == 0 || (bits > 0 && size > bytes.size() / bits + 1)) return {};
    // the last group may be truncated after the last value
    const std::uint64_t taken = size > left ? left : std::min<std::uint64_t>(left, 8 * size);
    if (bytes.size() < (taken * bits + 7) / 8) return {};
    for (std::uint64_t i = 0; i < taken; ++i)
      values.push_back(bits == 0 ? 0 : static_cast<std::uint32_t>(packed_at(bytes, i, bits)));
    bytes = bytes.subspan(std::min<std::uint64_t>(bytes.size(), size * bits));
  }
  return values;
}

unsigned bits_of(unsigned most) { return static_cast<unsigned>(std::bit_width(most)); }

}  // namespace feedline::format
