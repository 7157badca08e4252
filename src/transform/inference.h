// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks the arguments of operations and follows what they make of an image: channels, size, element type.

#include <optional>
#include <span>
#include <string>

#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline::transform {

struct Inferred {
  ColorMode mode = ColorMode::kRgb;  // what decode delivers
  Fidelity fidelity = Fidelity::kExact;
  bool applies_exif = false;
  int channels = 3;
  std::optional<Size> size;  // nullopt: as the image's
  std::string open_by;       // the operation whose outcomes differ in size; empty: none
  DType dtype = DType::kUint8;
};

// kConfig names the operation at fault and says what is wrong with it.
Result<Inferred> infer(std::span<const Operation> operations);

}  // namespace feedline::transform
