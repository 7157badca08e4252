// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks a chain of operations and follows its effect on an image: channels, size and element type.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline::transform {

struct Inferred {
  ColorMode mode = ColorMode::kRgb;  // of decode's pixels
  Fidelity fidelity = Fidelity::kExact;
  bool applies_exif = false;
  int channels = 3;
  std::optional<Size> size;  // nullopt: the image's
  std::string open_by;       // the operation whose results differ in size; empty: none
  DType dtype = DType::kUint8;
};

// kConfig names the operation at fault and says what is wrong with it.
Result<Inferred> infer(std::span<const Operation> operations);

// The image before the operation at hand, which each operation changes to the image after it.
class Inference {
 public:
  Result<void> apply(const Operation& operation, bool is_first);

  // ---- for operations ----

  Inferred state;
  bool is_first() const { return is_first_; }

  Result<void> needs_pixels() const;  // kConfig after normalize and to_dtype
  Result<void> becomes(Size size);
  Result<void> becomes_any_size();  // drawn, or by the image's. Requires pixels
  // Of an operation that moves pixels and leaves the size. Requires pixels.
  Result<void> check_interpolation(Interpolation interpolation) const;
  // One number, or one for each channel.
  Result<void> check_per_channel(std::string_view name, const std::vector<float>& values) const;

  // The image after `operations`, which are in the one at hand.
  Result<Inferred> nested(std::span<const Operation> operations, const Inferred& before) const;
  // The image is one or the other, by chance.
  Result<void> becomes_either(const Inferred& one, const Inferred& other);
  void forget_size_by_chance();

 private:
  int level_ = 0;            // of operations in operations
  std::string_view holder_;  // the operation at hand
  bool is_first_ = true;
};

}  // namespace feedline::transform
