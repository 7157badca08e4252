// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/image_input.h"

#include <algorithm>

#include "base/clock.h"
#include "transform/kernels/colour.h"

namespace feedline::pipeline {

Result<memory::PixelView> region_of(memory::PixelView view, const Box& region, ColorMode mode,
                                    memory::PixelBuffer& converted) {
  view.data = view.row(region.top) + region.left * view.channels;
  view.width = region.width;
  view.height = region.height;
  const int channels = mode == ColorMode::kRgb ? 3 : 1;
  if (view.channels == channels) return view;
  FEEDLINE_CHECK_OK(transform::grayscale(view, channels, converted));  // to L, or from L to three equal channels
  return converted.view();
}

bool is_encoded(const memory::Record::Field& stored) { return stored.pixels.data == nullptr; }

Result<Size> open_image(const memory::Record::Field& stored, bool applies_exif, ImageScratch& scratch) {
  if (!is_encoded(stored)) return Size{stored.pixels.height, stored.pixels.width};
  FEEDLINE_TRY(const decode::ImageHeader header, scratch.decoder.open(stored.bytes, applies_exif));
  if (stored.part) scratch.decoder.use_part(stored.part.get());
  scratch.deepest = std::max(scratch.deepest, header.depth);
  return Size{header.height, header.width};
}

Result<memory::PixelView> read_region(const memory::Record::Field& stored, const Box& region, ColorMode mode,
                                      FieldWork& work, std::uint64_t started_ns) {
  ImageScratch& scratch = *work.scratch.image;
  if (!is_encoded(stored)) return region_of(stored.pixels, region, mode, scratch.pixels);
  FEEDLINE_CHECK_OK(scratch.decoder.decode(region, mode, scratch.pixels));
  const memory::PixelView decoded = scratch.pixels.view();
  work.meter.count(telemetry::Stage::kDecode, started_ns, memory::bytes_of(decoded));
  return decoded;
}

Result<void> prepare_image(const memory::Record::Field& stored, const transform::Preparation& preparation,
                           const std::string& field, FieldWork& work, format::PixelRecordBuilder& cached) {
  ImageScratch& scratch = *work.scratch.image;
  const std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const Size image, open_image(stored, preparation.applies_exif(), scratch));
  note_drawn_size(work.scratch.drawn_for, image, field);
  FEEDLINE_TRY(const Size size, preparation.draw(image, scratch.drawing));
  FEEDLINE_TRY(const memory::PixelView pixels,
               read_region(stored, scratch.drawing.region, preparation.color_mode(), work, started));
  const auto room = cached.add_image(size.width, size.height, preparation.channels());
  return preparation.apply(scratch.drawing, pixels, size, scratch.workspace, room);
}

}  // namespace feedline::pipeline
