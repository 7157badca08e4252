// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/pointwise.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace feedline::transform {
namespace {

float divide(float a, float b, float reciprocal) {
  const float quotient = a * reciprocal;
  return std::fma(std::fma(-quotient, b, a), reciprocal, quotient);
}

// The arithmetic of the vector kernels, in scalar code.
float arithmetic(int byte, const PointwiseConstants& c) {
  const float scaled = divide(static_cast<float>(byte), 255.0f, kReciprocal255);
  return divide(scaled - c.mean, c.std, c.reciprocal_std);
}

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

}  // namespace

Pointwise::Pointwise(int channels) : channels_(channels) {
  for (Table& table : values_)
    for (int i = 0; i < 256; ++i) table[i] = static_cast<float>(i);
}

void Pointwise::convert(DType dtype, bool scale) {
  if (dtype == dtype_) return;
  FEEDLINE_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBfloat16);
  const bool divides = dtype_ == DType::kUint8 && scale;
  for (Table& table : values_) {
    for (float& value : table) {
      if (divides) value = value / 255.0f;
      if (dtype == DType::kFloat16) value = as_half(value);
    }
  }
  dtype_ = dtype;
}

void Pointwise::normalize(const op::Normalize& normalize) {
  if (dtype_ == DType::kUint8) convert(DType::kFloat32, true);
  const bool half = dtype_ == DType::kFloat16;
  for (std::size_t c = 0; c < 3; ++c) {
    float mean = normalize.mean[normalize.mean.size() == 1 ? 0 : c];
    float std = normalize.std[normalize.std.size() == 1 ? 0 : c];
    if (half) mean = as_half(mean), std = as_half(std);
    for (float& value : values_[c]) {
      value = value - mean;
      if (half) value = as_half(value);
      value = value / std;
      if (half) value = as_half(value);
    }
    constants_[c] = {mean, std, 1.0f / std};
    if (static_cast<int>(c) + 1 == channels_) break;
  }
}

void Pointwise::window(const op::Window& window) {
  if (dtype_ == DType::kUint8) convert(DType::kFloat32, false);
  for (Table& table : values_)
    for (float& value : table) value = in_window(value, window);
}

void Pointwise::finish() {
  proved_ = dtype_ != DType::kUint8 && dtype_ != DType::kBfloat16;
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels_); ++c) {
    for (int i = 0; i < 256; ++i) {
      const float exact = values_[c][i];
      const float computed = arithmetic(i, constants_[c]);
      halves_[c][i] = dtype_ == DType::kBfloat16 ? to_bfloat16(exact) : to_half(exact);
      // a table of halves may come from rounding the arithmetic's float
      if (dtype_ == DType::kFloat16 ? to_half(computed) != halves_[c][i] : !same_bits(computed, exact)) proved_ = false;
    }
  }
}

float in_window(float value, const op::Window& window) {
  const auto level = static_cast<float>(window.level), width = static_cast<float>(window.width);
  return std::fmin(std::fmax((value - level + width / 2) / width, 0.0F), 1.0F);
}

std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // NaN stays NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65520 and above: infinity
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal; adding 0.5 aligns and rounds the bits
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;  // ties go to even
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

float from_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0) {
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  const std::uint32_t wide = exponent == 31 ? 0x7f800000u : (exponent + 112) << 23;
  return std::bit_cast<float>(sign | wide | (fraction << 13));
}

}  // namespace feedline::transform
