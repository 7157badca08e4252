// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/datum.h"

#include <cstring>
#include <limits>

#include "format/wire_reader.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

// Converts a varint to an int32.
std::int64_t integer_in(Bytes bytes) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(take_varint(bytes).value_or(0)));
}

bool take(const WireReader& field, Datum& datum) {
  const auto type_is = [&](WireType type) { return field.is(field.number(), type); };
  switch (field.number()) {
    case 1:
      datum.channels = integer_in(field.bytes());
      return type_is(WireType::kVarint);
    case 2:
      datum.height = integer_in(field.bytes());
      return type_is(WireType::kVarint);
    case 3:
      datum.width = integer_in(field.bytes());
      return type_is(WireType::kVarint);
    case 4:
      datum.data = field.bytes();
      return type_is(WireType::kLength);
    case 5:
      datum.label = integer_in(field.bytes());
      return type_is(WireType::kVarint);
    case 6:
      if (!type_is(WireType::kFixed32) && !type_is(WireType::kLength)) return false;
      if (field.bytes().size() % sizeof(float) != 0) return false;
      if (!field.bytes().empty()) datum.floats.push_back(field.bytes());
      datum.float_count += field.bytes().size() / sizeof(float);
      return true;
    case 7:
      datum.encoded = integer_in(field.bytes()) != 0;
      return type_is(WireType::kVarint);
    default:
      return true;
  }
}

// Returns the product of the dimensions, or nullopt if no array can have these dimensions.
std::optional<std::uint64_t> elements_of(const Datum& datum) {
  std::uint64_t count = 1;
  for (const std::int64_t extent : {datum.channels, datum.height, datum.width})
    if (extent <= 0 || __builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count)) return {};
  return count;
}

}  // namespace

bool Datum::is_whole() const {
  if (encoded) return true;
  return elements_of(*this) == (floats.empty() ? data.size() : float_count);
}

std::optional<Datum> parse_datum(Bytes message) {
  Datum datum;
  WireReader reader(message);
  bool has_data = false;
  while (reader.next()) {
    if (!take(reader, datum)) return {};
    has_data = has_data || reader.number() == 4 || reader.number() == 6;
  }
  if (reader.is_damaged() || !has_data) return {};
  return datum;
}

Result<memory::PixelView> pixels_of(const Datum& datum, memory::ByteBuffer& room, std::uint64_t most_bytes) {
  const std::string extents =
      std::to_string(datum.channels) + " x " + std::to_string(datum.height) + " x " + std::to_string(datum.width);
  if (!datum.is_whole())
    return data_error("the Datum has " + std::to_string(datum.data.size()) + " bytes, but is " + extents, "format");
  if (datum.height > memory::PixelBuffer::kMaxPixels / datum.width)
    return data_error("the Datum is " + extents + ", which is too many pixels", "format");
  const std::size_t bytes = datum.data.size(), pixels = bytes / static_cast<std::size_t>(datum.channels);
  FEEDLINE_TRY(const auto out,
               room.make_room(bytes + memory::PixelBuffer::kRowSlack, most_bytes + memory::PixelBuffer::kRowSlack));
  const std::byte* in = datum.data.data();
  if (datum.channels == 1)
    std::memcpy(out.data(), in, bytes);
  else
    for (std::size_t i = 0; i < pixels; ++i)
      for (std::size_t c = 0; c < 3; ++c) out[3 * i + c] = in[(2 - c) * pixels + i];
  const int width = static_cast<int>(datum.width), channels = static_cast<int>(datum.channels);
  return memory::PixelView{reinterpret_cast<const std::uint8_t*>(out.data()), width, static_cast<int>(datum.height),
                           channels, static_cast<std::size_t>(width) * static_cast<std::size_t>(channels)};
}

}  // namespace feedline::format
