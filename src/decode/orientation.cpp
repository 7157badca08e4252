// SPDX-License-Identifier: Apache-2.0
// The EXIF data is an embedded TIFF file, which each codec finds. XMP, and the text chunks in which some programs store
// EXIF data, are ignored.
#include "decode/orientation.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "decode/codec.h"
#include "decode/file_bytes.h"
#include "decode/image_formats.h"

namespace feedline::decode {
namespace {

using namespace std::string_view_literals;

constexpr int kStored = 1;

// Parses a 12-byte entry: tag, type, count, value.
std::optional<int> entry_value(Bytes entry, bool big_endian) {
  constexpr std::uint32_t kOrientation = 0x0112, kShort = 3, kLong = 4;
  if (number(entry.first(2), big_endian) != kOrientation || number(entry.subspan(4, 4), big_endian) != 1) return {};
  const std::uint32_t type = number(entry.subspan(2, 2), big_endian);
  if (type != kShort && type != kLong) return {};
  const std::uint32_t value = number(entry.subspan(8, type == kShort ? 2 : 4), big_endian);
  return value <= 8 ? static_cast<int>(value) : kStored;
}

// Returns the orientation in the first directory of a TIFF file.
int in_exif(Bytes exif) {
  while (begins_with(exif, "Exif\0\0"sv)) exif = exif.subspan(6);
  const bool big_endian = begins_with(exif, "MM\0*"sv);
  if ((!big_endian && !begins_with(exif, "II*\0"sv)) || exif.size() < 8) return kStored;
  const Bytes directory = part(exif, number(exif.subspan(4, 4), big_endian));
  if (directory.size() < 2) return kStored;
  constexpr std::size_t kEntry = 12;
  const std::size_t entries = std::min<std::size_t>(number(directory.first(2), big_endian), directory.size() / kEntry);
  int found = kStored;
  for (std::size_t i = 0; i < entries; ++i) {
    const Bytes entry = part(directory, 2 + i * kEntry, kEntry);
    if (entry.size() == kEntry) found = entry_value(entry, big_endian).value_or(found);
  }
  return found;
}

template <int kChannels>
void turn_pixels(const Orientation& o, const memory::PixelView& stored, memory::PixelBuffer& out) {
  constexpr int kBlock = 32;  // square tiles whose pixels fit the L1 cache in either order
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(stored.stride);
  const std::ptrdiff_t along = (o.flips_x ? -1 : 1) * kChannels, down = o.flips_y ? -row : row;
  const std::uint8_t* const first =
      stored.data + (o.flips_x ? (stored.width - 1) * kChannels : 0) + (o.flips_y ? (stored.height - 1) * row : 0);
  const std::ptrdiff_t step_x = o.transposes ? down : along, step_y = o.transposes ? along : down;
  for (int top = 0; top < out.height(); top += kBlock)
    for (int left = 0; left < out.width(); left += kBlock)
      for (int y = top; y < std::min(top + kBlock, out.height()); ++y) {
        const std::uint8_t* from = first + y * step_y + left * step_x;
        std::uint8_t* to = out.row(y) + left * kChannels;
        for (int x = left; x < std::min(left + kBlock, out.width()); ++x, from += step_x, to += kChannels)
          for (int c = 0; c < kChannels; ++c) to[c] = from[c];
      }
}

void turn_large_pixels(const Orientation& o, memory::PixelView stored, memory::PixelBuffer& out) {
  const auto bytes = static_cast<std::size_t>(stored.channels);
  for (int y = 0; y < out.height(); ++y)
    for (int x = 0; x < out.width(); ++x) {
      const int column = o.transposes ? y : x, row = o.transposes ? x : y;
      const std::uint8_t* const from = stored.row(o.flips_y ? stored.height - 1 - row : row);
      std::memcpy(out.row(y) + static_cast<std::size_t>(x) * bytes,
                  from + static_cast<std::size_t>(o.flips_x ? stored.width - 1 - column : column) * bytes, bytes);
    }
}

}  // namespace

Orientation orientation_of(int number) {
  switch (number) {
    case 2:
      return {.flips_x = true};
    case 3:
      return {.flips_x = true, .flips_y = true};
    case 4:
      return {.flips_y = true};
    case 5:
      return {.transposes = true};
    case 6:
      return {.transposes = true, .flips_y = true};
    case 7:
      return {.transposes = true, .flips_x = true, .flips_y = true};
    case 8:
      return {.transposes = true, .flips_x = true};
    default:
      return {};
  }
}

int inverse_orientation(int number) { return number == 6 ? 8 : number == 8 ? 6 : number; }

int exif_orientation(const ImageFormat& format, Bytes file) {
  return format.codec == nullptr ? kStored : in_exif(format.codec->find_exif(file));
}

Orientation stored_orientation(const ImageFormat& format, Bytes file) {
  return orientation_of(exif_orientation(format, file));
}

Box stored_region(const Orientation& o, const Box& region, Size stored) {
  Box box = o.transposes ? Box{region.top, region.left, region.height, region.width} : region;
  if (o.flips_x) box.left = stored.width - box.left - box.width;
  if (o.flips_y) box.top = stored.height - box.top - box.height;
  return box;
}

void turn(const Orientation& orientation, memory::PixelView stored, memory::PixelBuffer& out) {
  FEEDLINE_CHECK(stored.channels == out.channels() && stored.channels >= 1);
  FEEDLINE_CHECK(out.width() == (orientation.transposes ? stored.height : stored.width) &&
                 out.height() == (orientation.transposes ? stored.width : stored.height));
  if (stored.channels > 3) return turn_large_pixels(orientation, stored, out);
  if (stored.channels == 1) return turn_pixels<1>(orientation, stored, out);
  stored.channels == 2 ? turn_pixels<2>(orientation, stored, out) : turn_pixels<3>(orientation, stored, out);
}

}  // namespace feedline::decode
