// SPDX-License-Identifier: Apache-2.0
#include "feedline/operation.h"

#include <string>
#include <utility>

#include "transform/operation/argument_words.h"
#include "transform/operation/description.h"
#include "transform/operation/image_operation.h"

namespace feedline {

Operation::Operation() : Operation(op::Skipped{}) {}

Operation::Operation(std::shared_ptr<const transform::ImageOperation> operation) : operation_(std::move(operation)) {}

std::string_view name_of(Fidelity fidelity) { return transform::word_of(fidelity); }

std::string_view name_of(BoxFormat format) { return transform::word_of(format); }

std::string_view name_of(Augmentation augmentation) {
  constexpr std::string_view kNames[] = {"identity",  "shear_x",    "shear_y",      "translate_x",  "translate_y",
                                         "rotate",    "brightness", "color",        "contrast",     "sharpness",
                                         "posterize", "solarize",   "solarize_add", "autocontrast", "equalize",
                                         "invert",    "grayscale",  "gaussian_blur"};
  return kNames[static_cast<std::size_t>(augmentation)];
}

std::string_view name_of(const Operation& operation) { return operation->name(); }

std::string describe(const Operation& operation) {
  std::string text = operation->describe();
  if (!operation.fields.empty()) text += (text.empty() ? "fields=" : ", fields=") + transform::listed(operation.fields);
  return std::string(name_of(operation)) + "(" + text + ")";
}

}  // namespace feedline
