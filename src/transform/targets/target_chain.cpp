// SPDX-License-Identifier: Apache-2.0
#include "transform/targets/target_chain.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "transform/drawer.h"
#include "transform/operation/field_operations.h"
#include "transform/operation/image_operation.h"
#include "transform/operation/inference.h"
#include "transform/targets/target_builders.h"

namespace feedline::transform {
namespace {

// torchvision v2 also rejects such borders for boxes and points.
Result<void> check_border(const Operation& operation) {
  if (!operation->properties().repeats_border) return {};
  return config_error(std::string(name_of(operation)) +
                      ": padding_mode: a border that repeats the image would repeat its boxes and points, which cannot "
                      "be (nor in torchvision); use \"constant\"");
}

bool does_nothing(const Operation& operation) {
  return !is_geometric(operation) && operation->properties().sanitize == nullptr;
}

}  // namespace

void TargetDrawing::begin_sanitizing() {
  if (sanitized) return;
  sanitized = true;
  rows_before = rows.rows();
  remaining.resize(rows_before);
  std::iota(remaining.begin(), remaining.end(), 0u);
}

void TargetDrawing::keep_left() {
  rows.keep(left);
  for (std::size_t i = 0; i < left.size(); ++i) remaining[i] = remaining[left[i]];
  remaining.resize(left.size());
}

op::Boxes boxes_of(std::span<const Operation> operations) {
  op::Boxes boxes;
  for (const Operation& operation : operations)
    if (const auto* own = operation->properties().boxes) boxes = *own;
  return boxes;
}

Result<std::shared_ptr<const TargetChain>> TargetChain::compile(TargetKind kind, const op::Boxes& boxes,
                                                                std::vector<Operation> operations, std::size_t first) {
  FEEDLINE_CHECK_OK(infer(operations));
  for (const Operation& operation : operations) {
    FEEDLINE_CHECK_OK(check_border(operation));
    if (is_automatic(operation))
      return config_error(std::string(name_of(operation)) +
                          ": it moves the pixels of images, and boxes and points cannot follow (nor in torchvision); "
                          "leave it out, or limit it to images with fields=");
  }
  return std::shared_ptr<const TargetChain>(new TargetChain(kind, boxes, std::move(operations), first));
}

bool TargetChain::is_idle() const {
  return std::all_of(operations_.begin() + static_cast<std::ptrdiff_t>(first_), operations_.end(), &does_nothing);
}

Result<void> TargetChain::draw(Canvas& canvas, const base::SampleKey& key, IouCrops& iou_crops,
                               TargetDrawing& drawing) const {
  Drawer drawer(0, key, drawing.decisions, canvas, &iou_crops);
  for (std::size_t i = first_; i < operations_.size(); ++i)
    FEEDLINE_CHECK_OK(drawer.draw(static_cast<int>(i), operations_[i]));
  return {};
}

template <typename Number>
Result<void> TargetChain::apply_to(Size image, const base::SampleKey& key, IouCrops& iou_crops,
                                   TargetDrawing& drawing) const {
  if (kind_ == TargetKind::kBoxes) {
    BoxBuilder<Number> builder(image, boxes_, drawing);
    return draw(builder, key, iou_crops, drawing);
  }
  PointBuilder<Number> builder(image, drawing);
  return draw(builder, key, iou_crops, drawing);
}

Result<void> TargetChain::apply(Size image, const base::SampleKey& key, IouCrops& iou_crops,
                                TargetDrawing& drawing) const {
  drawing.decisions.clear();
  drawing.sanitized = false;
  return drawing.rows.dtype() == DType::kFloat32 ? apply_to<float>(image, key, iou_crops, drawing)
                                                 : apply_to<std::int64_t>(image, key, iou_crops, drawing);
}

}  // namespace feedline::transform
