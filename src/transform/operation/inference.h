// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks a chain of operations, and tracks the effect of each on the image: channels, size and element type.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline::transform {

struct Inferred {
  ColorMode mode = ColorMode::kRgb;  // of the decoded pixels
  Fidelity fidelity = Fidelity::kExact;
  bool applies_exif = false;
  PixelValues values = PixelValues::kBytes;
  int channels = 3;             // 0: as stored, unless `values` is kBytes
  std::optional<Size> size;     // nullopt: the image's own size
  std::string open_by;          // the operation whose outcomes differ in size, or empty
  DType dtype = DType::kUint8;  // also of stored values, before operations on values
};

// size: of all images before the operations, if known. kConfig: the error names the invalid operation and the reason.
Result<Inferred> infer(std::span<const Operation> operations, std::optional<Size> size = {});

// The type of the image before the current operation, which updates it.
class Inference {
 public:
  Result<void> apply(const Operation& operation, bool is_first);

  // ---- for operations ----

  Inferred state;
  bool is_first() const { return is_first_; }

  Result<void> needs_pixels() const;  // kConfig after normalize and to_dtype
  Result<void> needs_bytes() const;   // kConfig if the image has stored values instead of 8-bit pixels
  Result<void> becomes(Size size);
  // The size is drawn, or derived from the size of the image. Requires pixels.
  Result<void> becomes_any_size();
  // For operations that move pixels without changing the size. Requires pixels.
  Result<void> check_interpolation(Interpolation interpolation) const;
  // Requires: there is one number, or one per channel.
  Result<void> check_per_channel(std::string_view name, const std::vector<float>& values) const;

  // Infers the image after `operations`, which are nested in the current operation.
  Result<Inferred> nested(std::span<const Operation> operations, const Inferred& before) const;
  // Sets the type of an image that is randomly one of the two.
  Result<void> becomes_either(const Inferred& one, const Inferred& other);
  void forget_size_by_chance();

 private:
  int level_ = 0;            // nesting depth
  std::string_view holder_;  // the current operation
  bool is_first_ = true;
};

}  // namespace feedline::transform
