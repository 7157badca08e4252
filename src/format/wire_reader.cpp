// SPDX-License-Identifier: Apache-2.0
#include "format/wire_reader.h"

#include <limits>

namespace feedline::format {

std::optional<std::uint64_t> take_varint(std::span<const std::byte>& bytes) {
  constexpr std::size_t kMostBytes = 10;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kMostBytes && i < bytes.size(); ++i) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
    value |= (byte & 0x7fU) << (7 * i);  // only one bit of the tenth byte counts, as in the protobuf library
    if ((byte & 0x80U) != 0) continue;
    bytes = bytes.subspan(i + 1);
    return value;
  }
  return {};
}

bool WireReader::take_tag() {
  const auto tag = take_varint(rest_);
  constexpr std::uint64_t kLastType = 5;
  if (!tag || *tag > std::numeric_limits<std::uint32_t>::max() || (*tag & 7U) > kLastType) return fail();
  number_ = static_cast<std::uint32_t>(*tag >> 3U);
  type_ = static_cast<WireType>(*tag & 7U);
  return number_ > 0 || fail();
}

bool WireReader::take_value() {
  std::uint64_t size = 0;
  if (type_ == WireType::kVarint) {
    auto after = rest_;
    if (!take_varint(after)) return fail();
    size = rest_.size() - after.size();
  } else if (type_ == WireType::kLength) {
    const auto length = take_varint(rest_);
    if (!length) return fail();
    size = *length;
  } else {
    size = type_ == WireType::kFixed64 ? 8 : 4;
  }
  if (size > rest_.size()) return fail();
  bytes_ = rest_.first(static_cast<std::size_t>(size));
  rest_ = rest_.subspan(static_cast<std::size_t>(size));
  return true;
}

// Skips to the end of a group. Does not compare the field numbers of nested groups.
bool WireReader::skip_group() {
  const std::uint32_t outer = number_;
  constexpr std::size_t kDeepest = 100;  // the same limit as the protobuf library
  for (std::size_t depth = 1; depth > 0;) {
    if (depth > kDeepest || rest_.empty() || !take_tag()) return fail();
    if (type_ == WireType::kGroup)
      ++depth;
    else if (type_ == WireType::kGroupEnd)
      --depth;
    else if (!take_value())
      return false;
  }
  return number_ == outer || fail();
}

bool WireReader::next() {
  while (!damaged_ && !rest_.empty()) {
    if (!take_tag()) return false;
    if (type_ == WireType::kGroupEnd) return fail();
    if (type_ != WireType::kGroup) return take_value();
    if (!skip_group()) return false;
  }
  return false;
}

}  // namespace feedline::format
