// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pixels_path.h"

#include <utility>

#include "base/clock.h"
#include "pipeline/field_scratch.h"
#include "transform/colour.h"

namespace feedline::pipeline {
namespace {

using telemetry::Stage;

bool is_encoded(const memory::Record::Field& stored) { return stored.pixels.data == nullptr; }

Result<Size> open_image(const memory::Record::Field& stored, ImageScratch& scratch) {
  if (!is_encoded(stored)) return Size{stored.pixels.height, stored.pixels.width};
  FEEDLINE_TRY(const decode::ImageHeader header, scratch.decoder.open(stored.bytes));
  return Size{header.height, header.width};
}

// The region of an image that is stored as pixels, in as many channels as the mode has.
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

}  // namespace

PixelsPath::PixelsPath(std::string name, std::shared_ptr<const transform::Chain> chain, Kept kept, BatchForm form,
                       bool needs_size)
    : FieldPath({.name = std::move(name), .array = chain->output(), .form = form}),
      chain_(std::move(chain)),
      kept_(std::move(kept)),
      needs_size_(needs_size) {}

// The first of a sample is noted in any case, for the masks that follow it.
Result<void> PixelsPath::check_size(Size image, FieldScratch& scratch) const {
  if (!needs_size_ && scratch.drawn_for.field != nullptr) return {};
  return check_drawn_size(scratch.drawn_for, image, spec().name);
}

// Of the scratch's drawing.
Result<ArrayView> PixelsPath::place_of(memory::Row& row, const transform::Chain& chain, FieldWork& work) const {
  if (row.item == nullptr) return row.view;
  const Shape& shape = chain.output().shape;
  if (shape[1] != kAnyLength) return place(row, shape, work);
  const Size size = work.scratch.image->drawing.size;
  return place(
      row, shape[0] == kAnyLength ? Shape{size.height, size.width, shape[2]} : Shape{shape[0], size.height, size.width},
      work);
}

void PixelsPath::add_scratch(FieldScratch& scratch) const {
  if (!scratch.image) scratch.image = std::make_unique<ImageScratch>();
}

// Of the scratch's drawing. started_ns: when the header began to be read. Requires: open_image() came before.
Result<memory::PixelView> PixelsPath::decode(const memory::Record::Field& stored, ColorMode mode, FieldWork& work,
                                             std::uint64_t started_ns) const {
  ImageScratch& scratch = *work.scratch.image;
  if (!is_encoded(stored)) return region_of(stored.pixels, scratch.drawing.region, mode, scratch.pixels);
  FEEDLINE_CHECK_OK(scratch.decoder.decode(scratch.drawing.region, mode, scratch.pixels));
  const memory::PixelView decoded = scratch.pixels.view();
  work.meter.count(Stage::kDecode, started_ns, memory::bytes_of(decoded));
  return decoded;
}

Result<void> PixelsPath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  const transform::Chain& chain = work.is_prepared ? *kept_.rest : *chain_;
  ImageScratch& scratch = *work.scratch.image;
  std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const Size image, open_image(stored, scratch));
  FEEDLINE_CHECK_OK(check_size(image, work.scratch));
  FEEDLINE_CHECK_OK(chain.draw(image, work.key, scratch.drawing));
  FEEDLINE_TRY(const ArrayView out, place_of(row, chain, work));
  const auto& drawing = scratch.drawing;
  if (is_encoded(stored) && drawing.planes &&
      scratch.decoder.decode_planes(drawing.region, chain.color_mode(), *drawing.planes, scratch.planes)) {
    work.meter.count(Stage::kDecode, started, memory::bytes_of(scratch.planes));
    started = base::now_ns();
    FEEDLINE_CHECK_OK(chain.apply(drawing, scratch.planes, scratch.workspace, out));
  } else {
    FEEDLINE_TRY(const memory::PixelView pixels, decode(stored, chain.color_mode(), work, started));
    started = base::now_ns();
    FEEDLINE_CHECK_OK(chain.apply(drawing, pixels, scratch.workspace, out));
  }
  work.meter.count(Stage::kTransform, started, out.spec.bytes());
  return {};
}

Result<void> PixelsPath::keep(const memory::Record::Field& stored, FieldWork& work,
                              format::PixelRecordBuilder& kept) const {
  const transform::Preparation& preparation = *kept_.preparation;
  ImageScratch& scratch = *work.scratch.image;
  const std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const Size image, open_image(stored, scratch));
  note_drawn_size(work.scratch.drawn_for, image, spec().name);
  FEEDLINE_TRY(const Size size, preparation.draw(image, scratch.drawing));
  FEEDLINE_TRY(const memory::PixelView pixels, decode(stored, preparation.color_mode(), work, started));
  const auto room = kept.add_image(size.width, size.height, preparation.channels());
  return preparation.apply(scratch.drawing, pixels, size, scratch.workspace, room);
}

Result<Size> PixelsPath::draw(const memory::Record::Field& stored, const base::SampleKey& key,
                              FieldScratch& scratch) const {
  FEEDLINE_TRY(const Size image, open_image(stored, *scratch.image));
  FEEDLINE_CHECK_OK(check_size(image, scratch));
  FEEDLINE_CHECK_OK(chain_->draw(image, key, scratch.image->drawing));
  return image;
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
  FEEDLINE_TRY(const ArrayView out, place_of(row, *chain_, work));
  FEEDLINE_CHECK_OK(chain_->apply(scratch.drawing, scratch.pixels.view(), workspace, out));
  work.meter.count(Stage::kTransform, started, out.spec.bytes());
  return {};
}

}  // namespace feedline::pipeline
