// SPDX-License-Identifier: Apache-2.0

// The chain in words, as it is fused.

#include "transform/compiled_chain.h"

namespace feedline::transform {
namespace {

constexpr const char* kTurned = ", turned as its EXIF orientation says";
constexpr const char* kFastDecode =
    ", fidelity fast: where a resize makes a JPEG smaller, at a part of its size, and in colour after the resize";

bool is_value_operation(const Operation& operation) {
  return std::holds_alternative<op::Normalize>(operation) || std::holds_alternative<op::ToDtype>(operation);
}

bool is_of_boxes(const Operation& operation) {
  return std::holds_alternative<op::Boxes>(operation) || std::holds_alternative<op::SanitizeBoundingBoxes>(operation);
}

bool is_flip(const Operation& operation) {
  return std::holds_alternative<op::RandomHorizontalFlip>(operation) ||
         std::holds_alternative<op::RandomVerticalFlip>(operation);
}

bool narrows_decoding(const Operation& operation) {
  if (const auto* crop = std::get_if<op::RandomCrop>(&operation)) return !crop->pad_if_needed && !any(crop->padding);
  return std::holds_alternative<op::CenterCrop>(operation) || std::holds_alternative<op::CornerCrop>(operation) ||
         std::holds_alternative<op::TrimBorder>(operation) || std::holds_alternative<op::Resize>(operation) ||
         std::holds_alternative<op::RandomResizedCrop>(operation) ||
         std::holds_alternative<op::RandomResize>(operation) ||
         std::holds_alternative<op::RandomShortSide>(operation) || std::holds_alternative<op::ScaleJitter>(operation) ||
         std::holds_alternative<op::ResizeKeepRatio>(operation) ||
         std::holds_alternative<op::RandomCropOrPad>(operation) || std::holds_alternative<op::RandomIouCrop>(operation);
}

}  // namespace

std::vector<std::string> explain_operations(std::span<const Operation> operations, const std::string& narrowed) {
  std::vector<std::string> lines;
  bool leading = true;  // only flips so far: what follows can still narrow what is used of the image
  bool of_output = false;
  for (const Operation& operation : operations) {
    of_output = of_output || is_value_operation(operation);
    if (std::holds_alternative<op::Decode>(operation) || std::holds_alternative<op::Skipped>(operation) ||
        is_of_boxes(operation) || is_value_operation(operation))
      continue;
    std::string line = describe(operation);
    if (is_flip(operation)) {
      line += ": moved to where rows are written, or into the last resize";
    } else if (leading && narrows_decoding(operation)) {
      line += ": " + narrowed;
    } else if (of_output && std::holds_alternative<op::RandomErasing>(operation)) {
      line += ": in the finished row";
    }
    leading = leading && (is_flip(operation) || narrows_decoding(operation));
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> CompiledChain::explain() const {
  std::vector<std::string> lines = explain_operations(
      operations_, input_.prepared ? "only its own pixels are touched" : "only the pixels it needs are decoded");
  if (!input_.prepared)
    lines.insert(lines.begin(), std::string("decode to ") + (input_.mode == ColorMode::kRgb ? "RGB" : "L") +
                                    (input_.applies_exif ? kTurned : "") +
                                    (input_.fidelity == Fidelity::kFast ? kFastDecode : ""));
  std::string values;
  for (const Operation& operation : operations_)
    if (is_value_operation(operation)) values += (values.empty() ? "" : ", ") + describe(operation);
  const ArraySpec& row = left_ ? left_->spec : output();
  const char* how = left_                           ? " on the device, by a table of all 256 values"
                    : emitter_.pointwise().proved() ? " by arithmetic proved equal to the table of all 256 values"
                                                    : " by a table of all 256 values";
  std::string line = "write " + std::string(name_of(row.dtype)) + " " + row.shape.to_string();
  if (row.dtype != DType::kUint8) line += how;
  if (!values.empty()) line += ", which holds " + values;
  lines.push_back(std::move(line));
  return lines;
}

}  // namespace feedline::transform
