// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/image_size.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "decode/decoder.h"
#include "decode/orientation.h"
#include "format/field_kind.h"

namespace feedline::format {
namespace {

class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  // 0 past the end: callers for whom that matters check size() first
  std::uint32_t at(std::size_t i) const { return i < bytes_.size() ? std::to_integer<std::uint32_t>(bytes_[i]) : 0; }
  std::uint32_t big(std::size_t i, std::size_t count) const {
    std::uint32_t value = 0;
    for (std::size_t k = 0; k < count; ++k) value = value << 8 | at(i + k);
    return value;
  }
  std::uint32_t little(std::size_t i, std::size_t count) const {
    std::uint32_t value = 0;
    for (std::size_t k = 0; k < count; ++k) value |= at(i + k) << (8 * k);
    return value;
  }
  bool starts_with(std::size_t i, std::string_view text) const {
    return std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size())
        .substr(std::min(i, size()))
        .starts_with(text);
  }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

std::optional<ImageSize> sides(std::uint32_t width, std::uint32_t height) {
  constexpr std::uint32_t kMost = 1U << 30;
  if (width == 0 || height == 0 || width > kMost || height > kMost) return {};
  return ImageSize{static_cast<int>(width), static_cast<int>(height)};
}

// Scans the markers up to the first frame header.
std::optional<ImageSize> size_of_jpeg(const Bytes& file) {
  std::size_t at = 2;
  while (at + 9 < file.size()) {
    if (file.at(at) != 0xff) return {};
    const std::uint32_t marker = file.at(at + 1);
    if (marker == 0xff) {  // fill bytes
      ++at;
      continue;
    }
    const bool has_no_length = marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7);
    if (has_no_length) {
      at += 2;
      continue;
    }
    const bool is_frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (is_frame) return sides(file.big(at + 7, 2), file.big(at + 5, 2));
    const std::uint32_t length = file.big(at + 2, 2);
    if (length < 2 || marker == 0xd9 || marker == 0xda) return {};
    at += 2 + length;
  }
  return {};
}

std::optional<ImageSize> size_of_webp(const Bytes& file) {
  constexpr std::uint32_t kSide = 0x3fff;
  if (file.size() < 30) return {};
  if (file.starts_with(12, "VP8X")) return sides(file.little(24, 3) + 1, file.little(27, 3) + 1);
  if (file.starts_with(12, "VP8L")) {
    const std::uint32_t bits = file.little(21, 4);
    return sides((bits & kSide) + 1, (bits >> 14 & kSide) + 1);
  }
  if (file.starts_with(12, "VP8 ")) return sides(file.little(26, 2) & kSide, file.little(28, 2) & kSide);
  return {};
}

std::optional<ImageSize> size_of_any(const Bytes& file) {
  if (file.starts_with(0, "\xff\xd8")) return size_of_jpeg(file);
  if (file.starts_with(0, "\x89PNG\r\n\x1a\n") && file.starts_with(12, "IHDR") && file.size() >= 24)
    return sides(file.big(16, 4), file.big(20, 4));
  if (file.starts_with(0, "RIFF") && file.starts_with(8, "WEBP")) return size_of_webp(file);
  return {};
}

}  // namespace

namespace {

// For formats without a header parser above. One per thread, reused for many images.
Result<memory::ImageFrame> read_by_decoder(std::span<const std::byte> file) {
  thread_local decode::ImageDecoder decoder;
  auto header = decoder.open(file);
  if (!header)
    return data_error("cannot read the size of the image, which scales its boxes: " + std::move(header).error().what,
                      "format");
  return memory::ImageFrame{static_cast<std::uint8_t>(decoder.orientation()), false, header->width, header->height};
}

int orientation_of_file(std::span<const std::byte> file) {
  const auto format = decode::sniff(file);
  if (!format) return 1;
  if (*format != decode::ImageFormat::kForeign) return decode::exif_orientation(*format, file);
  const auto frame = read_by_decoder(file);
  return frame ? frame->orientation : 1;
}

}  // namespace

Result<memory::ImageFrame> read_frame(std::span<const std::byte> file) {
  const auto size = size_of_any(Bytes(file));
  if (!size) return read_by_decoder(file);
  return memory::ImageFrame{static_cast<std::uint8_t>(orientation_of_file(file)), false, size->width, size->height};
}

ImageSize turned_size(const memory::ImageFrame& frame) {
  const bool swaps = decode::orientation_of(frame.orientation).transposes;
  return swaps ? ImageSize{frame.height, frame.width} : ImageSize{frame.width, frame.height};
}

memory::ImageFrame frame_by_size(std::span<const std::byte> file, const ImageSize& stated) {
  if (!decode::orientation_of(orientation_of_file(file)).transposes) return {};
  const auto frame = read_frame(file);  // faults of the image are reported when it is decoded
  if (!frame || frame->width == frame->height) return {};
  const auto fits = [&stated](int width, int height) { return stated.width == width && stated.height == height; };
  memory::ImageFrame known = *frame;
  known.is_turned = fits(frame->height, frame->width);
  return known.is_turned || fits(frame->width, frame->height) ? known : memory::ImageFrame{};
}

void set_frame(std::span<const PartField> fields, const memory::ImageFrame& frame, memory::Record& record) {
  if (frame.orientation == 1 || !has_part(fields, Part::kImage)) return;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const FieldKind kind = fields[i].description.kind;
    if (kind == FieldKind::kBoxes || kind == FieldKind::kKeypoints || kind == FieldKind::kMask)
      record.fields[i].frame = frame;
  }
}

}  // namespace feedline::format
