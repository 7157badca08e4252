// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/mask_path.h"

#include <optional>
#include <utility>

#include "base/clock.h"
#include "decode/turned_targets.h"
#include "pipeline/fields/field_scratch.h"

namespace feedline::pipeline {

using telemetry::Stage;

Result<decode::LabelHeader> open_labels(const memory::Record::Field& stored, decode::LabelDecoder& decoder) {
  if (stored.pixels.data == nullptr) return decoder.open(stored.bytes);
  return decode::LabelHeader{stored.pixels.width, stored.pixels.height,
                             stored.pixels.channels == 1 ? DType::kUint8 : DType::kUint16};
}

void MaskPath::add_scratch(FieldScratch& scratch) const {
  if (!scratch.labels) scratch.labels = std::make_unique<LabelScratch>();
}

// Draws the geometry of a mask, and decodes the mask unless it is stored as labels.
Result<memory::PixelView> MaskPath::draw(const memory::Record::Field& stored, const transform::LabelChain& chain,
                                         FieldWork& work) const {
  LabelScratch& scratch = *work.scratch.labels;
  const std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const decode::LabelHeader header, open_labels(stored, scratch.decoder));
  if (header.dtype != spec().array.dtype)
    return data_error("the labels are " + std::string(name_of(header.dtype)) + ", but those of the first sample are " +
                          std::string(name_of(spec().array.dtype)),
                      "decode");
  std::optional<decode::FrameTurn> turn;
  if (decode::needs_turn(stored.frame, turns_image_)) turn = decode::turn_of(stored.frame);
  Size size{header.height, header.width};
  if (turn && turn->orientation.transposes) std::swap(size.height, size.width);
  FEEDLINE_CHECK_OK(check_drawn_size(work.scratch.drawn_for, size, spec().name));
  FEEDLINE_CHECK_OK(chain.draw(size, work.key, scratch.drawing));
  memory::PixelView labels = stored.pixels;
  if (labels.data == nullptr) {
    FEEDLINE_CHECK_OK(scratch.decoder.decode(scratch.labels));
    work.meter.count(Stage::kDecode, started, memory::bytes_of(scratch.labels.view()));
    labels = scratch.labels.view();
  }
  if (!turn) return labels;
  FEEDLINE_CHECK_OK(scratch.turned.resize(size.width, size.height, labels.channels));
  decode::turn(turn->orientation, labels, scratch.turned);
  return scratch.turned.view();
}

Result<void> MaskPath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  FEEDLINE_TRY(const memory::PixelView labels, draw(stored, work.is_prepared ? *split_.rest : *chain_, work));
  const std::uint64_t started = base::now_ns();
  const transform::LabelDrawing& drawing = work.scratch.labels->drawing;
  FEEDLINE_TRY(const ArrayView out, destination(row, Shape{drawing.size().height, drawing.size().width}, work));
  transform::LabelChain::apply(drawing, labels, out.data);
  work.meter.count(Stage::kTransform, started, out.spec.bytes());
  return {};
}

Result<void> MaskPath::prepare(const memory::Record::Field& stored, FieldWork& work,
                               format::PixelRecordBuilder& cached) const {
  FEEDLINE_TRY(const memory::PixelView labels, draw(stored, *split_.preparation, work));
  const transform::LabelDrawing& drawing = work.scratch.labels->drawing;
  const auto room = cached.add_image(drawing.size().width, drawing.size().height, labels.channels);
  transform::LabelChain::apply(drawing, labels, room.data());
  return {};
}

std::vector<std::string> MaskPath::explain() const {
  return {"stored labels, transformed like the images, with nearest-neighbour resizing"};
}

}  // namespace feedline::pipeline
