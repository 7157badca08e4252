// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/field_scratch.h"

namespace feedline::pipeline {

void FieldScratch::connect() {
  if (!targets) return;
  if (image) image->drawing.iou_crops = &targets->iou_crops;
  if (labels) labels->drawing.iou_crops = &targets->iou_crops;
}

void FieldScratch::begin_sample() {
  drawn_for = {};
  if (volumes) volumes->is_drawn = false;
  if (!targets) return;
  targets->iou_crops.clear();
  targets->are_drawn = false;
  targets->boxes.sanitized = false;
}

void note_drawn_size(DrawnFor& drawn_for, Size size, const std::string& field) {
  if (drawn_for.field == nullptr) drawn_for = {size, &field};
}

Result<void> check_drawn_size(DrawnFor& drawn_for, Size size, const std::string& field) {
  note_drawn_size(drawn_for, size, field);
  if (size.height == drawn_for.size.height && size.width == drawn_for.size.width) return {};
  const auto text = [](Size s) { return std::to_string(s.height) + " x " + std::to_string(s.width); };
  return data_error("'" + field + "' has " + text(size) + " pixels and '" + *drawn_for.field + "' " +
                        text(drawn_for.size) + "; random operations need the same size for both",
                    "transform");
}

}  // namespace feedline::pipeline
