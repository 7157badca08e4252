// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/mask_stack_path.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "decode/turned_targets.h"
#include "pipeline/fields/field_scratch.h"
#include "pipeline/fields/filtered_rows.h"
#include "pipeline/fields/row_shape.h"

namespace feedline::pipeline {

void MaskStackPath::add_scratch(FieldScratch& scratch) const {
  if (!scratch.labels) scratch.labels = std::make_unique<LabelScratch>();
  if (belongs_to_boxes_ && !scratch.targets) scratch.targets = std::make_unique<TargetScratch>();
}

Result<void> MaskStackPath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  const std::uint64_t started = base::now_ns();
  FEEDLINE_CHECK(stored.array && stored.array->shape.dims() == 3 && stored.array->bytes() == stored.bytes.size());
  const Shape& all = stored.array->shape;
  std::optional<decode::FrameTurn> turn;
  if (decode::needs_turn(stored.frame, turns_image_)) turn = decode::turn_of(stored.frame);
  const int stored_height = static_cast<int>(all[1]), stored_width = static_cast<int>(all[2]);
  const bool transposes = turn && turn->orientation.transposes;
  const int height = transposes ? stored_width : stored_height, width = transposes ? stored_height : stored_width;
  FEEDLINE_CHECK_OK(check_drawn_size(work.scratch.drawn_for, {height, width}, spec().name));
  transform::LabelDrawing& drawing = work.scratch.labels->drawing;
  FEEDLINE_CHECK_OK(chain_->draw({height, width}, work.key, drawing));
  const TargetScratch* const targets = belongs_to_boxes_ ? work.scratch.targets.get() : nullptr;
  const FilteredRows filtered(targets);
  FEEDLINE_TRY(const Shape left, filtered.shape_of(all));
  const Size size = drawing.size();
  const Shape shape{left[0], size.height, size.width};
  FEEDLINE_CHECK_OK(check_row({DType::kUint8, shape}, spec(), "masks:", "transform"));
  FEEDLINE_TRY(const ArrayView out, destination(row, shape, work));
  const std::size_t stored_plane = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  const std::size_t plane = static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width);
  for (std::int64_t i = 0; i < left[0]; ++i) {
    const auto from =
        static_cast<std::size_t>(filtered.are_all() ? i : targets->boxes.remaining[static_cast<std::size_t>(i)]);
    const auto* labels = reinterpret_cast<const std::uint8_t*>(stored.bytes.data()) + from * stored_plane;
    memory::PixelView mask{labels, stored_width, stored_height, 1, static_cast<std::size_t>(stored_width)};
    if (turn) {
      memory::PixelBuffer& turned = work.scratch.labels->turned;
      FEEDLINE_CHECK_OK(turned.resize(width, height, 1));
      decode::turn(turn->orientation, mask, turned);
      mask = turned.view();
    }
    transform::LabelChain::apply(drawing, mask, out.data + static_cast<std::size_t>(i) * plane);
  }
  work.meter.count(telemetry::Stage::kTransform, started, out.spec.bytes());
  return {};
}

Result<void> MaskStackPath::prepare(const memory::Record::Field& /*stored*/, FieldWork& /*work*/,
                                    format::PixelRecordBuilder& /*cached*/) const {
  return internal_error("object masks cannot be cached");
}

std::vector<std::string> MaskStackPath::explain() const {
  return {"a mask for each object, transformed like the images, with nearest-neighbour resizing"};
}

}  // namespace feedline::pipeline
