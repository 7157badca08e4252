// SPDX-License-Identifier: Apache-2.0
#pragma once

// A compiled list of operations on the boxes or points of a sample. Boxes and points move with the sample's images, by
// torchvision v2's rules and with its arithmetic.

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/random.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "transform/augment/iou_crop.h"
#include "transform/steps.h"
#include "transform/targets/target_rows.h"
#include "transform/warp.h"

namespace feedline::transform {

enum class TargetKind : std::uint8_t { kBoxes, kPoints };

// The boxes or points of one sample, before and after the operations. Each thread reuses one object.
struct TargetDrawing {
  TargetRows rows;
  bool sanitized = false;                // true after sanitize_bounding_boxes
  std::vector<std::uint32_t> remaining;  // then, the original indices of the remaining rows
  std::size_t rows_before = 0;           // then, the original number of rows

  // For builders.
  std::vector<Decision> decisions;
  std::vector<std::uint32_t> left;   // rows that remain after the next keep_left()
  std::vector<std::uint8_t> inside;  // of the last random_iou_crop
  ElasticScratch elastic;
  std::vector<Corners<float>> float_corners;
  std::vector<Corners<std::int64_t>> int_corners;
  void begin_sanitizing();
  void keep_left();
  template <typename Number>
  auto& corners() {
    if constexpr (std::is_same_v<Number, float>)
      return float_corners;
    else
      return int_corners;
  }
};

// Immutable and thread-safe once compiled.
class TargetChain {
 public:
  // boxes: the format of the field; not needed for points. Operations that are not geometric have no effect; those
  // before `first` have already been applied. kConfig: an operation is invalid for images, chooses its changes itself
  // (is_automatic()), or adds a border that repeats the image, which torchvision also rejects.
  static Result<std::shared_ptr<const TargetChain>> compile(TargetKind kind, const op::Boxes& boxes,
                                                            std::vector<Operation> operations, std::size_t first = 0);

  TargetKind kind() const { return kind_; }
  const op::Boxes& boxes() const { return boxes_; }
  std::span<const Operation> operations() const { return operations_; }
  // Returns whether the operations change nothing, so that no image is needed.
  bool is_idle() const;
  // Draws the same values as Chain::draw for an image of this size, and applies them to drawing.rows. Boxes add their
  // draws to `iou_crops`, and points read them. kData: as for Chain::draw.
  Result<void> apply(Size image, const base::SampleKey& key, IouCrops& iou_crops, TargetDrawing& drawing) const;

 private:
  TargetChain(TargetKind kind, const op::Boxes& boxes, std::vector<Operation> operations, std::size_t first)
      : kind_(kind), boxes_(boxes), operations_(std::move(operations)), first_(first) {}

  Result<void> draw(Canvas& canvas, const base::SampleKey& key, IouCrops& iou_crops, TargetDrawing& drawing) const;
  template <typename Number>
  Result<void> apply_to(Size image, const base::SampleKey& key, IouCrops& iou_crops, TargetDrawing& drawing) const;

  const TargetKind kind_;
  const op::Boxes boxes_;
  const std::vector<Operation> operations_;
  const std::size_t first_;
};

// Returns the last description of a field's boxes in its operations, or the default.
op::Boxes boxes_of(std::span<const Operation> operations);

}  // namespace feedline::transform
