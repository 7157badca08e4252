// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers of any dtype that images store, converted from and to the numbers in which they are interpolated.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "feedline/array.h"
#include "transform/kernels/pointwise.h"

namespace feedline::transform {

struct Half {
  std::uint16_t bits;
};

// Calls use(T()) with the type of the dtype's numbers.
template <typename Use>
auto with_number_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::kInt8:
      return use(std::int8_t{});
    case DType::kUint16:
      return use(std::uint16_t{});
    case DType::kInt16:
      return use(std::int16_t{});
    case DType::kUint32:
      return use(std::uint32_t{});
    case DType::kInt32:
      return use(std::int32_t{});
    case DType::kUint64:
      return use(std::uint64_t{});
    case DType::kInt64:
      return use(std::int64_t{});
    case DType::kFloat16:
      return use(Half{});
    case DType::kFloat32:
      return use(float{});
    case DType::kFloat64:
      return use(double{});
    case DType::kUint8:
    case DType::kBool:
    case DType::kBfloat16:
      break;
  }
  return use(std::uint8_t{});
}

template <typename Work, typename T>
Work number_from(T value) {
  if constexpr (std::is_same_v<T, Half>)
    return from_half(value.bits);
  else
    return static_cast<Work>(value);
}

// Whole numbers are rounded to the nearest, ties to even, and limited to the range of T.
template <typename T, typename Work>
T number_to(Work value) {
  if constexpr (std::is_same_v<T, Half>) {
    return {to_half(static_cast<float>(value))};
  } else if constexpr (std::is_integral_v<T>) {
    constexpr auto kLow = static_cast<Work>(std::numeric_limits<T>::min());
    constexpr auto kHigh = static_cast<Work>(std::numeric_limits<T>::max());  // may be the number after the largest
    if (!(value > kLow)) return std::isnan(value) ? T{0} : std::numeric_limits<T>::min();
    if (value >= kHigh) return std::numeric_limits<T>::max();
    return static_cast<T>(std::nearbyint(value));
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace feedline::transform
