// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers in memory whose dtype is known only at run time.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "feedline/array.h"

namespace feedline::memory {

// The bits of a kFloat16 or kBfloat16 number.
struct HalfBits {
  std::uint16_t bits;
};

// Calls use(number) with the number of this dtype at the start of `bytes`, which may be unaligned. Requires: `bytes`
// has the size of one number.
template <typename Use>
auto with_number(DType dtype, std::span<const std::byte> bytes, Use use) {
  const auto with = [&]<typename Number>(Number number) {
    std::memcpy(&number, bytes.data(), sizeof number);
    return use(number);
  };
  switch (dtype) {
    case DType::kBool:
      return use(bytes.front() != std::byte{0});
    case DType::kInt8:
      return with(std::int8_t{});
    case DType::kInt16:
      return with(std::int16_t{});
    case DType::kInt32:
      return with(std::int32_t{});
    case DType::kInt64:
      return with(std::int64_t{});
    case DType::kUint16:
      return with(std::uint16_t{});
    case DType::kUint32:
      return with(std::uint32_t{});
    case DType::kUint64:
      return with(std::uint64_t{});
    case DType::kFloat32:
      return with(float{});
    case DType::kFloat64:
      return with(double{});
    case DType::kFloat16:
    case DType::kBfloat16:
      return with(HalfBits{});
    case DType::kUint8:
      break;
  }
  return with(std::uint8_t{});
}

}  // namespace feedline::memory
