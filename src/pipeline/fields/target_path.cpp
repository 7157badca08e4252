// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/target_path.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "decode/text/number_lists.h"
#include "decode/turned_targets.h"
#include "pipeline/fields/box_validation.h"
#include "pipeline/fields/field_scratch.h"
#include "pipeline/fields/filtered_rows.h"
#include "pipeline/fields/row_shape.h"
#include "pipeline/fields/stored_array.h"
#include "transform/kernels/pointwise.h"
#include "transform/operation/image_operation.h"

namespace feedline::pipeline {
namespace {

using telemetry::Stage;
using transform::TargetKind;

std::optional<DType> taken_as(DType stored) {
  switch (stored) {
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return DType::kFloat32;
    case DType::kBool:
    case DType::kUint64:
      return std::nullopt;
    default:
      return DType::kInt64;
  }
}

std::string_view word_of(TargetKind kind) { return kind == TargetKind::kBoxes ? "boxes" : "keypoints"; }

// kData: `shape` is not a shape of boxes or points.
Result<void> check_shape(TargetKind kind, const Shape& shape) {
  if (shape.dims() == 1 && shape[0] == 0) return {};
  const bool is_sound = kind == TargetKind::kBoxes
                            ? shape.dims() == 2 && shape[1] == 4
                            : (shape.dims() == 2 || shape.dims() == 3) && shape[shape.dims() - 1] == 2;
  if (is_sound) return {};
  const bool is_rotated = kind == TargetKind::kBoxes && shape.dims() == 2 && (shape[1] == 5 || shape[1] == 8);
  return data_error(std::string(word_of(kind)) + " of shape " + shape.to_string() + "; they must be " +
                        (kind == TargetKind::kBoxes ? "(N, 4)" : "(N, 2) or (N, K, 2)") +
                        (is_rotated ? ": rotated boxes cannot be transformed; without \":boxes\", they are delivered "
                                      "unchanged as an array"
                                    : ""),
                    "decode");
}

// The stored boxes or points, all with the same dtype. `json`: the memory of numbers that were parsed from JSON lists.
struct Stored {
  ArraySpec spec;
  std::span<const std::byte> data;
};
Result<Stored> read_stored(TargetKind kind, const memory::Record::Field& field, std::vector<float>& json) {
  Stored stored;
  if (field.array || decode::is_npy(field.bytes)) {
    FEEDLINE_TRY(const decode::NpyArray array, read_array(field));
    stored = {array.spec, array.data};
  } else {
    FEEDLINE_TRY(stored.spec.shape, decode::read_number_lists(field.bytes, json));
    stored.spec.dtype = DType::kFloat32;
    stored.data = std::as_bytes(std::span(json));
  }
  FEEDLINE_CHECK_OK(check_shape(kind, stored.spec.shape));
  if (!taken_as(stored.spec.dtype))
    return data_error(std::string(word_of(kind)) + " of " + std::string(name_of(stored.spec.dtype)) +
                          "; they must be floats or integers of up to 63 bits",
                      "decode");
  return stored;
}

template <typename From, typename To>
void convert(std::span<const std::byte> from, std::span<To> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    From value;
    std::memcpy(&value, from.data() + i * sizeof(From), sizeof(From));
    to[i] = static_cast<To>(value);
  }
}

void convert_halves(std::span<const std::byte> from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::uint16_t half;
    std::memcpy(&half, from.data() + i * sizeof half, sizeof half);
    to[i] = transform::from_half(half);
  }
}

// Requires: taken_as(dtype) returns the dtype of `To`, or an integer dtype if `To` is float.
template <typename To>
void convert(DType dtype, std::span<const std::byte> from, std::span<To> to) {
  switch (dtype) {
    case DType::kFloat32:
      return convert<float>(from, to);
    case DType::kFloat64:
      return convert<double>(from, to);
    case DType::kInt8:
      return convert<std::int8_t>(from, to);
    case DType::kInt16:
      return convert<std::int16_t>(from, to);
    case DType::kInt32:
      return convert<std::int32_t>(from, to);
    case DType::kInt64:
      return convert<std::int64_t>(from, to);
    case DType::kUint8:
      return convert<std::uint8_t>(from, to);
    case DType::kUint16:
      return convert<std::uint16_t>(from, to);
    case DType::kUint32:
      return convert<std::uint32_t>(from, to);
    case DType::kFloat16:
      if constexpr (std::is_same_v<To, float>) convert_halves(from, to);
      return;
    default:
      return;
  }
}

}  // namespace

Result<ArraySpec> read_target_spec(TargetKind kind, const memory::Record::Field& field) {
  std::vector<float> json;
  FEEDLINE_TRY(const Stored stored, read_stored(kind, field, json));
  return ArraySpec{*taken_as(stored.spec.dtype), stored.spec.shape};
}

void TargetPath::add_scratch(FieldScratch& scratch) const {
  if (!scratch.targets) scratch.targets = std::make_unique<TargetScratch>();
}

transform::TargetDrawing& TargetPath::drawing_of(FieldScratch& scratch) const {
  return part_ == Part::kLeads ? scratch.targets->boxes : scratch.targets->rows;
}

Result<void> TargetPath::read(const memory::Record::Field& field, FieldScratch& scratch) const {
  const TargetKind kind = chain_->kind();
  FEEDLINE_TRY(const Stored stored, read_stored(kind, field, scratch.targets->numbers));
  const Shape& shape = stored.spec.shape;
  const bool is_empty = shape.elements() == 0;
  const Shape& all = spec().array.shape;
  if (shape.dims() != all.dims() && !is_empty)
    return data_error(std::string(word_of(kind)) + " of shape " + shape.to_string() +
                          ", but those of the first sample have " + std::to_string(all.dims()) + " dimensions",
                      "decode");
  if (!is_empty && spec().array.dtype == DType::kInt64 && taken_as(stored.spec.dtype) == DType::kFloat32)
    return data_error(std::string(word_of(kind)) + " of " + std::string(name_of(stored.spec.dtype)) +
                          ", but those of the first sample are integers; use one dtype for all",
                      "decode");
  transform::TargetRows& rows = drawing_of(scratch).rows;
  std::size_t numbers_per_row = shape.dims() > 1 ? 1 : 0;
  for (std::size_t i = 1; i < shape.dims(); ++i) numbers_per_row *= static_cast<std::size_t>(shape[i]);
  rows.reset(spec().array.dtype, static_cast<std::size_t>(shape[0]), numbers_per_row);
  if (is_empty) return {};
  const auto fill = [&](auto numbers) {
    convert(stored.spec.dtype, stored.data, numbers);
    if (!decode::needs_turn(field.frame, turns_image_)) return;
    const decode::FrameTurn turn = decode::turn_of(field.frame);
    if (kind == TargetKind::kBoxes)
      decode::turn_boxes(turn, chain_->boxes().format, numbers);
    else
      decode::turn_points(turn, numbers);
  };
  rows.dtype() == DType::kFloat32 ? fill(rows.numbers<float>()) : fill(rows.numbers<std::int64_t>());
  return {};
}

Result<void> TargetPath::move(const memory::Record::Field& stored, const transform::TargetChain& chain,
                              FieldWork& work) const {
  FEEDLINE_CHECK_OK(read(stored, work.scratch));
  transform::TargetDrawing& drawing = drawing_of(work.scratch);
  drawing.sanitized = false;
  const DrawnFor& drawn_for = work.scratch.drawn_for;
  if (refuses_unsound_ && !work.is_prepared)
    FEEDLINE_CHECK_OK(validate_boxes(drawing.rows, chain_->boxes().format,
                                     drawn_for.field == nullptr ? std::nullopt : std::optional(drawn_for.size)));
  if (chain.is_idle()) return {};
  if (drawn_for.field == nullptr)
    return data_error("the sample has no image or mask to define the size for transforms", "transform");
  return chain.apply(drawn_for.size, work.key, work.scratch.targets->iou_crops, drawing);
}

Result<void> TargetPath::draw(const memory::Record::Field& stored, FieldWork& work) const {
  FEEDLINE_CHECK_OK(move(stored, work.is_prepared ? *split_.rest : *chain_, work));
  work.scratch.targets->are_drawn = true;
  return {};
}

// Uses the extents that are common to all samples; for a sample without rows, those of the first sample.
Shape TargetPath::shape_of(const transform::TargetRows& rows) const {
  const auto count = static_cast<std::int64_t>(rows.rows());
  if (chain_->kind() == TargetKind::kBoxes) return {count, 4};
  if (spec().array.shape.dims() == 2) return {count, 2};
  const std::int64_t all = spec().array.shape[1];
  return {count,
          rows.numbers_per_row() > 0 || all == kAnyLength ? static_cast<std::int64_t>(rows.numbers_per_row() / 2) : all,
          2};
}

Result<void> TargetPath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  const std::uint64_t started = base::now_ns();
  TargetScratch& scratch = *work.scratch.targets;
  if (part_ != Part::kLeads || !scratch.are_drawn)
    FEEDLINE_CHECK_OK(move(stored, work.is_prepared ? *split_.rest : *chain_, work));
  transform::TargetRows& rows = drawing_of(work.scratch).rows;
  const FilteredRows filtered(part_ == Part::kBelongsToBoxes ? &scratch : nullptr);
  FEEDLINE_TRY(const Shape shape, filtered.shape_of(shape_of(rows)));
  FEEDLINE_CHECK_OK(check_row({rows.dtype(), shape}, spec(), std::string(word_of(chain_->kind())) + ":", "decode"));
  FEEDLINE_TRY(const ArrayView out, destination(row, shape, work));
  filtered.copy(rows.bytes(), out.data);
  work.meter.count(Stage::kTransform, started, out.spec.bytes());
  return {};
}

Result<void> TargetPath::prepare(const memory::Record::Field& stored, FieldWork& work,
                                 format::PixelRecordBuilder& record) const {
  TargetScratch& scratch = *work.scratch.targets;
  FEEDLINE_CHECK_OK(move(stored, *split_.preparation, work));
  transform::TargetRows& rows = drawing_of(work.scratch).rows;
  const FilteredRows filtered(part_ == Part::kBelongsToBoxes ? &scratch : nullptr);
  FEEDLINE_TRY(const Shape shape, filtered.shape_of(shape_of(rows)));
  const ArraySpec array{rows.dtype(), shape};
  scratch.rows_file.resize(array.bytes());
  filtered.copy(rows.bytes(), scratch.rows_file.data());
  decode::write_npy(array, scratch.rows_file, scratch.file);
  record.add_bytes(scratch.file);
  return {};
}

std::vector<std::string> TargetPath::explain() const {
  const op::Boxes& boxes = chain_->boxes();
  if (chain_->kind() == TargetKind::kPoints) return {"keypoints, transformed like the images"};
  std::string line = "boxes (" + std::string(name_of(boxes.format)) + "), transformed like the images" +
                     (boxes.clamps ? ", and clamped to their edges" : "");
  for (const Operation& operation : chain_->operations())
    if (operation->properties().sanitize != nullptr) line += "; dropped by " + describe(operation);
  return {line};
}

}  // namespace feedline::pipeline
