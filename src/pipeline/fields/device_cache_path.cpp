// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/device_cache_path.h"

#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "pipeline/fields/device_rows.h"
#include "pipeline/fields/field_scratch.h"
#include "pipeline/fields/image_input.h"

namespace feedline::pipeline {

// A uint8 chain needs no conversion: the bytes are the elements.
std::shared_ptr<const transform::DeviceElements> elements_on_device(const transform::Chain& chain, Layout layout) {
  if (auto elements = chain.device_elements()) return elements;
  const ArraySpec& spec = chain.output();
  FEEDLINE_CHECK(spec.dtype == DType::kUint8);
  const auto extent = [&](std::size_t planar, std::size_t interleaved) {
    return static_cast<int>(spec.shape[layout == Layout::kNchw ? planar : interleaved]);
  };
  return std::make_shared<const transform::DeviceElements>(transform::DeviceElements{
      .spec = spec, .layout = layout, .size = {extent(1, 0), extent(2, 1)}, .channels = extent(0, 2), .tables = {}});
}

DeviceCachePath::DeviceCachePath(std::string name, std::shared_ptr<const transform::Preparation> preparation,
                                 std::shared_ptr<const transform::Chain> rest, Layout layout, std::size_t row_bytes,
                                 bool needs_size)
    : FieldPath({.name = std::move(name), .array = {DType::kUint8, {static_cast<std::int64_t>(row_bytes)}}}),
      preparation_(std::move(preparation)),
      rest_(std::move(rest)),
      device_elements_(elements_on_device(*rest_, layout)),
      needs_size_(needs_size) {}

void DeviceCachePath::add_scratch(FieldScratch& scratch) const {
  if (!scratch.image) scratch.image = std::make_unique<ImageScratch>();
}

Result<void> DeviceCachePath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  FEEDLINE_CHECK(work.is_prepared);
  ImageScratch& scratch = *work.scratch.image;
  const std::uint64_t started = base::now_ns();
  const Size image{stored.pixels.height, stored.pixels.width};
  if (needs_size_ || work.scratch.drawn_for.field == nullptr)
    FEEDLINE_CHECK_OK(check_drawn_size(work.scratch.drawn_for, image, spec().name));
  FEEDLINE_CHECK_OK(rest_->draw(image, work.key, scratch.drawing));
  const std::span bytes(static_cast<std::byte*>(row.view.data), row.view.spec.bytes());
  const std::size_t rectangle_bytes = rectangles_bytes(device_elements_->most_rectangles);
  FEEDLINE_CHECK_OK(write_device_row(scratch.drawing, stored.pixels, scratch.columns, scratch.rows,
                                     bytes.first(bytes.size() - rectangle_bytes)));
  if (rectangle_bytes > 0)
    write_rectangles(rest_->list_rectangles(scratch.drawing, scratch.workspace), bytes.last(rectangle_bytes));
  work.meter.count(telemetry::Stage::kTransform, started, row.view.spec.bytes());
  return {};
}

Result<void> DeviceCachePath::prepare(const memory::Record::Field& stored, FieldWork& work,
                                      format::PixelRecordBuilder& cached) const {
  return prepare_image(stored, *preparation_, spec().name, work, cached);
}

std::vector<std::string> DeviceCachePath::explain() const {
  std::vector<std::string> lines = rest_->explain();
  for (std::string& line : lines) line = "on the GPU: " + line;
  return lines;
}

}  // namespace feedline::pipeline
