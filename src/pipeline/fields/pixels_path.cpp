// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/pixels_path.h"

#include <utility>

#include "base/clock.h"
#include "pipeline/fields/field_scratch.h"
#include "pipeline/fields/image_input.h"

namespace feedline::pipeline {

using telemetry::Stage;

Shape shape_drawn(const transform::Chain& chain, const transform::Drawing& drawing) {
  const Shape& shape = chain.output().shape;
  if (shape[1] != kAnyLength) return shape;
  const Size size = drawing.size;
  return shape[0] == kAnyLength ? Shape{size.height, size.width, shape[2]} : Shape{shape[0], size.height, size.width};
}

PixelsPath::PixelsPath(std::string name, std::shared_ptr<const transform::Chain> chain, CacheSplit split,
                       BatchForm form, bool needs_size)
    : FieldPath({.name = std::move(name), .array = chain->output(), .form = form}),
      chain_(std::move(chain)),
      split_(std::move(split)),
      needs_size_(needs_size) {}

// The size of a sample's first image is always recorded, for later masks.
Result<void> PixelsPath::check_size(Size image, FieldScratch& scratch) const {
  if (!needs_size_ && scratch.drawn_for.field != nullptr) return {};
  return check_drawn_size(scratch.drawn_for, image, spec().name);
}

// Reads the drawing in the scratch memory.
Result<ArrayView> PixelsPath::destination_of(memory::Row& row, const transform::Chain& chain, FieldWork& work) const {
  if (row.item == nullptr) return row.view;
  return destination(row, shape_drawn(chain, work.scratch.image->drawing), work);
}

void PixelsPath::add_scratch(FieldScratch& scratch) const {
  if (!scratch.image) scratch.image = std::make_unique<ImageScratch>();
}

Result<void> PixelsPath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  const transform::Chain& chain = work.is_prepared ? *split_.rest : *chain_;
  ImageScratch& scratch = *work.scratch.image;
  std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const Size image, open_image(stored, chain.applies_exif(), scratch));
  FEEDLINE_CHECK_OK(check_size(image, work.scratch));
  FEEDLINE_CHECK_OK(chain.draw(image, work.key, scratch.drawing));
  FEEDLINE_TRY(const ArrayView out, destination_of(row, chain, work));
  const auto& drawing = scratch.drawing;
  if (is_encoded(stored) && drawing.planes &&
      scratch.decoder.decode_planes(drawing.region, chain.color_mode(), *drawing.planes, scratch.planes)) {
    work.meter.count(Stage::kDecode, started, memory::bytes_of(scratch.planes));
    started = base::now_ns();
    FEEDLINE_CHECK_OK(chain.apply(drawing, scratch.planes, scratch.workspace, out));
  } else {
    FEEDLINE_TRY(const memory::PixelView pixels,
                 read_region(stored, drawing.region, chain.color_mode(), work, started));
    started = base::now_ns();
    FEEDLINE_CHECK_OK(chain.apply(drawing, pixels, scratch.workspace, out));
  }
  work.meter.count(Stage::kTransform, started, out.spec.bytes());
  return {};
}

Result<void> PixelsPath::prepare(const memory::Record::Field& stored, FieldWork& work,
                                 format::PixelRecordBuilder& cached) const {
  return prepare_image(stored, *split_.preparation, spec().name, work, cached);
}

Result<Size> PixelsPath::draw(const memory::Record::Field& stored, const base::SampleKey& key,
                              FieldScratch& scratch) const {
  FEEDLINE_TRY(const Size image, open_image(stored, chain_->applies_exif(), *scratch.image));
  FEEDLINE_CHECK_OK(check_size(image, scratch));
  FEEDLINE_CHECK_OK(chain_->draw(image, key, scratch.image->drawing));
  return image;
}

Result<Size> PixelsPath::size(const memory::Record::Field& stored, FieldScratch& scratch) const {
  return open_image(stored, chain_->applies_exif(), *scratch.image);
}

bool PixelsPath::begin(const memory::Record::Field& stored, const FieldWork& work) const {
  return is_encoded(stored) && draw(stored, work.key, work.scratch) && !work.scratch.image->drawing.planes;
}

std::array<Result<void>, 2> PixelsPath::decode_in_turn(FieldScratch& first, FieldScratch& second) const {
  const auto task_of = [this](ImageScratch& scratch) {
    return decode::ImageDecoder::Task{scratch.drawing.region, chain_->color_mode(), &scratch.pixels};
  };
  return decode::ImageDecoder::decode_in_turn(first.image->decoder, task_of(*first.image), second.image->decoder,
                                              task_of(*second.image));
}

Result<void> PixelsPath::finish(FieldWork& work, transform::Workspace& workspace, memory::Row& row) const {
  const ImageScratch& scratch = *work.scratch.image;
  const std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const ArrayView out, destination_of(row, *chain_, work));
  FEEDLINE_CHECK_OK(chain_->apply(scratch.drawing, scratch.pixels.view(), workspace, out));
  work.meter.count(Stage::kTransform, started, out.spec.bytes());
  return {};
}

}  // namespace feedline::pipeline
