// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations on values, which follow the last operation on pixels: conversions and normalizations, as a function of
// a byte for each channel. This function is evaluated once for all 256 bytes, one operation at a time, in the element
// type in which PyTorch computes. The resulting table is the definition. The faster arithmetic of the kernels is used
// only if it was verified to reproduce the table's bits for every byte.

#include <array>
#include <cstdint>
#include <optional>

#include "feedline/array.h"
#include "feedline/operation.h"
#include "transform/kernels/kernels.h"
#include "transform/operation/image_operation.h"

namespace feedline::transform {

class Pointwise final : public ValueSteps {
 public:
  explicit Pointwise(int channels);

  void convert(DType dtype, bool scale) override;  // Requires: not from a float to kUint8; nothing after kBfloat16
  void normalize(const op::Normalize& normalize) override;  // Requires: one mean and std, or as many as channels
  void window(const op::Window& window) override;
  void finish();  // tables are valid after it

  DType dtype() const { return dtype_; }
  const float (*float32_tables() const)[256] { return values_.data(); }
  const std::uint16_t (*float16_tables() const)[256] { return halves_.data(); }  // of kBfloat16 too
  // Returns one proof per channel, or nullptr if the tables must be used.
  const PointwiseConstants* proved() const { return proved_ ? constants_.data() : nullptr; }

 private:
  using Table = float[256];
  using HalfTable = std::uint16_t[256];

  int channels_;
  DType dtype_ = DType::kUint8;
  std::array<Table, 3> values_;
  std::array<HalfTable, 3> halves_{};
  std::array<PointwiseConstants, 3> constants_{};
  bool proved_ = false;
};

// Returns clip((value - level + width / 2) / width, 0, 1), computed in single precision.
float in_window(float value, const op::Window& window);
// Converts to IEEE 754 binary16, rounding to nearest even.
std::uint16_t to_half(float value);
float from_half(std::uint16_t bits);
inline float as_half(float value) { return from_half(to_half(value)); }  // rounded to float16
// Returns the upper half of a float32, rounded to nearest even.
std::uint16_t to_bfloat16(float value);

}  // namespace feedline::transform
