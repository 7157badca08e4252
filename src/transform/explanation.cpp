// SPDX-License-Identifier: Apache-2.0

// Describes a fused chain as text.

#include "transform/compiled_chain.h"
#include "transform/operation/image_operation.h"

namespace feedline::transform {
namespace {

constexpr const char* kTurned = ", turned as its EXIF orientation says";
constexpr const char* kFastDecode =
    ", fidelity fast: where a resize makes a JPEG smaller, at a part of its size, and in colour after the resize";

}  // namespace

std::vector<std::string> explain_operations(std::span<const Operation> operations, const std::string& narrowed) {
  std::vector<std::string> lines;
  bool leading =
      true;  // only flips and crops so far: the next crop can still narrow the part of the image that is used
  bool of_output = false;
  for (const Operation& operation : operations) {
    const Properties properties = operation->properties();
    of_output = of_output || properties.stage == Stage::kValues;
    if (properties.stage != Stage::kPixels) continue;
    std::string line = describe(operation);
    if (properties.is_flip) {
      line += ": moved to where rows are written, or into the last resize";
    } else if (leading && properties.narrows_decoding) {
      line += ": " + narrowed;
    } else if (of_output && properties.erases) {
      line += ": in the finished row";
    }
    leading = leading && (properties.is_flip || properties.narrows_decoding);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> CompiledChain::explain() const {
  std::vector<std::string> lines = explain_operations(
      operations_, input_.prepared ? "only the pixels of the region are read" : "only the pixels it needs are decoded");
  if (!input_.prepared)
    lines.insert(lines.begin(), std::string("decode to ") + (input_.mode == ColorMode::kRgb ? "RGB" : "L") +
                                    (input_.applies_exif ? kTurned : "") +
                                    (input_.fidelity == Fidelity::kFast ? kFastDecode : ""));
  std::string values;
  for (const Operation& operation : operations_)
    if (operation->properties().stage == Stage::kValues) values += (values.empty() ? "" : ", ") + describe(operation);
  const ArraySpec& row = device_elements_ ? device_elements_->spec : output();
  const char* how = device_elements_                ? " on the device, by a table of all 256 values"
                    : emitter_.pointwise().proved() ? " by arithmetic proved equal to the table of all 256 values"
                                                    : " by a table of all 256 values";
  std::string line = "write " + std::string(name_of(row.dtype)) + " " + row.shape.to_string();
  if (row.dtype != DType::kUint8) line += how;
  if (!values.empty()) line += ", which holds " + values;
  lines.push_back(std::move(line));
  return lines;
}

}  // namespace feedline::transform
