// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "feedline/array.h"

namespace feedline::transform {

// The boxes or points of one sample: rows of numbers that are all float32 or all int64. Each thread reuses one object.
class TargetRows {
 public:
  // The numbers are unspecified afterwards. Requires: the dtype is float32 or int64.
  void reset(DType dtype, std::size_t rows, std::size_t numbers_per_row) {
    FEEDLINE_CHECK(dtype == DType::kFloat32 || dtype == DType::kInt64);
    dtype_ = dtype;
    rows_ = rows;
    numbers_per_row_ = numbers_per_row;
    memory_.resize((bytes().size() + sizeof(std::int64_t) - 1) / sizeof(std::int64_t));
  }

  DType dtype() const { return dtype_; }
  std::size_t rows() const { return rows_; }
  std::size_t numbers_per_row() const { return numbers_per_row_; }
  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(memory_.data()), rows_ * numbers_per_row_ * size_of(dtype_)};
  }
  // Requires: Number matches the dtype.
  template <typename Number>
  std::span<Number> numbers() {
    constexpr DType kWanted = std::is_same_v<Number, float> ? DType::kFloat32 : DType::kInt64;
    FEEDLINE_CHECK(dtype_ == kWanted);
    return {reinterpret_cast<Number*>(memory_.data()), rows_ * numbers_per_row_};
  }
  // Retains only these rows. Requires: the indices ascend.
  void keep(std::span<const std::uint32_t> remaining) {
    const std::size_t row_bytes = numbers_per_row_ * size_of(dtype_);
    std::byte* to = bytes().data();
    const std::byte* const from = to;
    for (const std::uint32_t row : remaining) {
      if (row_bytes > 0) std::memmove(to, from + row * row_bytes, row_bytes);
      to += row_bytes;
    }
    rows_ = remaining.size();
  }

 private:
  DType dtype_ = DType::kFloat32;
  std::size_t rows_ = 0, numbers_per_row_ = 0;
  std::vector<std::int64_t> memory_;
};

}  // namespace feedline::transform
