// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/compact_reader.h"

namespace feedline::format {

void CompactReader::fail() {
  damaged_ = true;
  rest_ = {};
}

void CompactReader::drop(std::uint64_t bytes) {
  if (bytes > rest_.size()) return fail();
  rest_ = rest_.subspan(bytes);
}

std::uint8_t CompactReader::byte() {
  if (rest_.empty()) return fail(), 0;
  const auto value = std::to_integer<std::uint8_t>(rest_.front());
  rest_ = rest_.subspan(1);
  return value;
}

std::uint64_t CompactReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t next = byte();
    value |= static_cast<std::uint64_t>(next & 0x7F) << shift;
    if (next < 0x80) return value;
  }
  return fail(), 0;
}

std::int64_t CompactReader::integer() {
  const std::uint64_t value = varint();
  return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

std::string_view CompactReader::text() {
  const std::uint64_t bytes = varint();
  const auto begin = rest_;
  drop(bytes);
  if (damaged_) return {};
  return {reinterpret_cast<const char*>(begin.data()), bytes};
}

CompactType CompactReader::next_field(std::int64_t& id) {
  const std::uint8_t head = byte();
  if (damaged_ || head == 0) return CompactType::kStop;
  const unsigned type = head & 0x0FU, step = head >> 4U;
  if (type == 0 || type > static_cast<unsigned>(CompactType::kStruct)) return fail(), CompactType::kStop;
  id = step == 0 ? integer() : id + step;
  return damaged_ ? CompactType::kStop : static_cast<CompactType>(type);
}

std::uint64_t CompactReader::list(CompactType& type) {
  const std::uint8_t head = byte();
  std::uint64_t count = head >> 4U;
  if (count == 15) count = varint();
  const unsigned kind = head & 0x0FU;
  // each element takes at least one byte
  if (damaged_ || kind == 0 || kind > static_cast<unsigned>(CompactType::kStruct) || count > rest_.size()) {
    if (!damaged_ && count == 0) return 0;
    return fail(), 0;
  }
  type = static_cast<CompactType>(kind);
  return count;
}

void CompactReader::skip(CompactType type) {
  if (type != CompactType::kTrue && type != CompactType::kFalse) skip_item(type);  // the type is the boolean's value
}

void CompactReader::skip_item(CompactType type) {
  switch (type) {
    case CompactType::kStop:
      return fail();
    case CompactType::kTrue:
    case CompactType::kFalse:
    case CompactType::kByte:
      return drop(1);
    case CompactType::kInt16:
    case CompactType::kInt32:
    case CompactType::kInt64:
      return (void)varint();
    case CompactType::kDouble:
      return drop(8);
    case CompactType::kBinary:
      return (void)text();
    case CompactType::kList:
    case CompactType::kSet:
      if (++depth_ > kDeepest) return fail();
      items([](CompactType) { return false; });
      --depth_;
      return;
    case CompactType::kMap: {
      if (++depth_ > kDeepest) return fail();
      const std::uint64_t count = varint();
      if (count > 0) {
        const std::uint8_t kinds = byte();
        if (count > rest_.size()) return fail();  // each pair takes at least one byte
        for (std::uint64_t i = 0; i < count && !damaged_; ++i) {
          skip_item(static_cast<CompactType>(kinds >> 4U));
          skip_item(static_cast<CompactType>(kinds & 0x0FU));
        }
      }
      --depth_;
      return;
    }
    case CompactType::kStruct:
      return fields([](std::int64_t, CompactType) { return false; });
  }
  fail();
}

}  // namespace feedline::format
