// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/device_decode_path.h"

#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "decode/image_formats.h"
#include "decode/jpeg/jpeg_segments.h"
#include "decode/orientation.h"
#include "pipeline/fields/device_cache_path.h"
#include "pipeline/fields/device_rows.h"
#include "pipeline/fields/field_scratch.h"
#include "pipeline/fields/image_input.h"

namespace feedline::pipeline {

using telemetry::Stage;

DeviceDecodePath::DeviceDecodePath(std::string name, std::shared_ptr<device::ImageDecoder> decoder,
                                   std::shared_ptr<const transform::Chain> rest,
                                   std::shared_ptr<const transform::Chain> on_host, Layout layout,
                                   std::size_t row_bytes, bool applies_exif, bool needs_size)
    : FieldPath({.name = std::move(name), .array = {DType::kUint8, {static_cast<std::int64_t>(row_bytes)}}}),
      decoder_(std::move(decoder)),
      rest_(std::move(rest)),
      on_host_(std::move(on_host)),
      device_elements_(elements_on_device(*rest_, layout)),
      applies_exif_(applies_exif),
      needs_size_(needs_size) {}

void DeviceDecodePath::add_scratch(FieldScratch& scratch) const {
  if (!scratch.image) scratch.image = std::make_unique<ImageScratch>();
}

bool DeviceDecodePath::is_for_decoder(const memory::Record::Field& stored) const {
  static const decode::ImageFormat& jpeg = decode::image_format("jpeg");
  return is_encoded(stored) && decode::is_plain_colour_jpeg(stored.bytes) &&
         (!applies_exif_ || decode::stored_orientation(jpeg, stored.bytes).is_stored());
}

// Returns false without writing anything if the host must make the row.
Result<bool> DeviceDecodePath::fill_on_device(const memory::Record::Field& stored, Size image, FieldWork& work,
                                              std::span<std::byte> row) const {
  ImageScratch& scratch = *work.scratch.image;
  const std::uint64_t started = base::now_ns();
  const memory::PixelView decoded{nullptr, image.width, image.height, 3, static_cast<std::size_t>(image.width) * 3};
  if (!write_device_row(scratch.drawing, decoded, scratch.columns, scratch.rows, row)) return false;
  FEEDLINE_TRY(const auto address, decoder_->decode(stored.bytes, image, row.data()));
  if (!address) return false;
  set_resident_image(row, *address);
  work.meter.count(Stage::kDecode, started, memory::bytes_of(decoded));
  return true;
}

Result<void> DeviceDecodePath::fill_on_host(const memory::Record::Field& stored, FieldWork& work,
                                            std::span<std::byte> row) const {
  ImageScratch& scratch = *work.scratch.image;
  std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const memory::PixelView pixels,
               read_region(stored, scratch.drawing.region, on_host_->color_mode(), work, started));
  started = base::now_ns();
  const ArraySpec& spec = on_host_->output();
  scratch.made.resize(spec.bytes() + memory::PixelBuffer::kRowSlack);
  FEEDLINE_CHECK_OK(on_host_->apply(scratch.drawing, pixels, scratch.workspace, {scratch.made.data(), spec}));
  FEEDLINE_TRY(const std::uint64_t address, decoder_->bring(std::span(scratch.made).first(spec.bytes()), row.data()));
  write_made_row(address, {static_cast<int>(spec.shape[0]), static_cast<int>(spec.shape[1])},
                 static_cast<int>(spec.shape[2]), row);
  work.meter.count(Stage::kTransform, started, spec.bytes());
  return {};
}

Result<void> DeviceDecodePath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  ImageScratch& scratch = *work.scratch.image;
  const std::span all(static_cast<std::byte*>(row.view.data), row.view.spec.bytes());
  const std::size_t rectangle_bytes = rectangles_bytes(device_elements_->most_rectangles);
  const std::span bytes = all.first(all.size() - rectangle_bytes);
  FEEDLINE_TRY(const Size image, open_image(stored, applies_exif_, scratch));
  if (needs_size_ || work.scratch.drawn_for.field == nullptr)
    FEEDLINE_CHECK_OK(check_drawn_size(work.scratch.drawn_for, image, spec().name));
  FEEDLINE_CHECK_OK(rest_->draw(image, work.key, scratch.drawing));
  if (rectangle_bytes > 0)
    write_rectangles(rest_->list_rectangles(scratch.drawing, scratch.workspace), all.last(rectangle_bytes));
  if (is_for_decoder(stored)) {
    FEEDLINE_TRY(const bool is_there, fill_on_device(stored, image, work, bytes));
    if (is_there) return {};
  }
  return fill_on_host(stored, work, bytes);
}

Result<void> DeviceDecodePath::prepare(const memory::Record::Field& /*stored*/, FieldWork& /*work*/,
                                       format::PixelRecordBuilder& /*cached*/) const {
  FEEDLINE_CHECK(!"a cache does not support decoding on a device");
}

std::vector<std::string> DeviceDecodePath::explain() const {
  const auto counts = decoder_->counts();
  std::vector<std::string> lines{"decode to RGB on the GPU, by " + decoder_->name() + ": " +
                                 std::to_string(counts.decoded) + " images so far; the CPU decoded " +
                                 std::to_string(counts.brought) + " unsupported ones"};
  for (const std::string& line : rest_->explain()) lines.push_back("on the GPU: " + line);
  return lines;
}

}  // namespace feedline::pipeline
