// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/image_size.h"

#include <cstdint>
#include <utility>

#include "decode/codec.h"
#include "decode/decoder.h"
#include "decode/image_formats.h"
#include "decode/orientation.h"
#include "format/field_kind.h"

namespace feedline::format {
namespace {

// Used for formats whose codec does not determine the image size. Each thread reuses one decoder for many images.
Result<memory::ImageFrame> read_by_decoder(std::span<const std::byte> file) {
  thread_local decode::ImageDecoder decoder;
  auto header = decoder.open(file);
  if (!header)
    return data_error("cannot read the size of the image, which scales its boxes: " + std::move(header).error().what,
                      "format");
  return memory::ImageFrame{static_cast<std::uint8_t>(decoder.orientation()), false, header->width, header->height};
}

int orientation_of_file(std::span<const std::byte> file) {
  const decode::ImageFormat* const format = decode::format_of(file);
  if (format == nullptr) return 1;
  if (format->codec != nullptr) return decode::exif_orientation(*format, file);
  const auto frame = read_by_decoder(file);
  return frame ? frame->orientation : 1;
}

}  // namespace

Result<memory::ImageFrame> read_frame(std::span<const std::byte> file) {
  const decode::ImageFormat* const format = decode::format_of(file);
  if (format == nullptr || format->codec == nullptr) return read_by_decoder(file);
  const auto size = format->codec->read_size(file);
  if (!size || !decode::check_size(size->width, size->height)) return read_by_decoder(file);
  return memory::ImageFrame{static_cast<std::uint8_t>(decode::exif_orientation(*format, file)), false, size->width,
                            size->height};
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
