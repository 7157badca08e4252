// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/number_copy.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "memory/number.h"

namespace feedline::format {
namespace {

using memory::HalfBits;

float float_of(HalfBits half) {
  constexpr std::uint32_t kExponent = 0x7c00, kFraction = 0x3ff, kFloatExponent = 0x7f800000;
  constexpr int kShift = 13;                         // the fraction has 10 bits, and in a float 23
  constexpr std::uint32_t kBias = (127 - 15) << 23;  // the difference of the exponents' biases
  const std::uint32_t sign = static_cast<std::uint32_t>(half.bits & 0x8000) << 16;
  const std::uint32_t exponent = half.bits & kExponent, fraction = half.bits & kFraction;
  if (exponent == kExponent) return std::bit_cast<float>(sign | kFloatExponent | fraction << kShift);
  if (exponent != 0) return std::bit_cast<float>(sign | (((exponent | fraction) << kShift) + kBias));
  const float small = static_cast<float>(fraction) * 0x1p-24F;  // a subnormal number
  return sign != 0 ? -small : small;
}

template <typename To, typename From>
To converted(From number) {
  if constexpr (std::is_same_v<From, To>)
    return number;
  else if constexpr (std::is_same_v<From, HalfBits>)
    return static_cast<To>(float_of(number));
  else
    return static_cast<To>(number);
}

std::unexpected<Error> no_value() { return data_error("a row has no value", "format"); }

bool is_valid(std::span<const std::byte> bits, std::uint64_t i) {
  return (std::to_integer<unsigned>(bits[i / 8]) >> (i % 8) & 1U) != 0;
}

// Calls copy(row, index) for each row that has a number, and null(row) for the others. Returns false if null() does.
template <typename Copy, typename Null>
bool each_number(const NumberRun& run, std::span<const GatheredRow> rows, Copy copy, Null null) {
  if (!run.value_of.empty()) {
    for (const GatheredRow& row : rows) {
      const std::uint32_t index = run.value_of[row.row - run.begin];
      if (index != NumberRun::kNull)
        copy(row, index);
      else if (!null(row))
        return false;
    }
  } else if (!run.valid.empty()) {
    for (const GatheredRow& row : rows) {
      if (is_valid(run.valid, row.row - run.begin))
        copy(row, row.row - run.begin);
      else if (!null(row))
        return false;
    }
  } else {
    for (const GatheredRow& row : rows) copy(row, row.row - run.begin);
  }
  return true;
}

// `null`: the number for rows without a value; nullopt if they are errors.
template <typename From, typename To>
Result<void> copy_as(const NumberRun& run, std::span<const GatheredRow> rows, std::optional<To> null, std::byte* out,
                     std::size_t stride) {
  const std::byte* const values = run.values.data();
  bool is_too_large = false;
  const auto copy = [&](const GatheredRow& row, std::uint64_t index) {
    From number;
    std::memcpy(&number, values + index * sizeof number, sizeof number);
    const To made = converted<To>(number);
    if constexpr (std::is_same_v<From, std::uint64_t> && std::is_same_v<To, std::int64_t>) is_too_large |= made < 0;
    std::memcpy(out + row.to * stride, &made, sizeof made);
  };
  const auto use_null = [&](const GatheredRow& row) {
    if (null) std::memcpy(out + row.to * stride, &*null, sizeof *null);
    return null.has_value();
  };
  if (!each_number(run, rows, copy, use_null)) return no_value();
  if (is_too_large) return data_error("an integer exceeds 63 bits", "format");
  return {};
}

template <typename To>
Result<void> copy_to(DType from, const NumberRun& run, std::span<const GatheredRow> rows, std::optional<To> null,
                     std::byte* out, std::size_t stride) {
  const auto zero = std::array<std::byte, 8>{};
  return memory::with_number(from, zero, [&](auto number) -> Result<void> {
    using From = decltype(number);
    constexpr bool is_integer = std::is_integral_v<From>;
    if constexpr (is_integer || std::is_floating_point_v<To>) return copy_as<From, To>(run, rows, null, out, stride);
    FEEDLINE_CHECK(!"an integer from a floating-point number");
  });
}

// The bits of a NaN of this dtype, or nullopt if it has none.
template <typename Bits>
std::optional<Bits> nan_bits(DType dtype) {
  if (dtype == DType::kFloat16) return static_cast<Bits>(0x7e00);
  if constexpr (sizeof(Bits) == sizeof(float))
    if (dtype == DType::kFloat32) return std::bit_cast<Bits>(std::numeric_limits<float>::quiet_NaN());
  if constexpr (sizeof(Bits) == sizeof(double))
    if (dtype == DType::kFloat64) return std::bit_cast<Bits>(std::numeric_limits<double>::quiet_NaN());
  return {};
}

template <typename Bits>
Result<void> copy_bits(const NumberRun& run, std::span<const GatheredRow> rows, const NumberConversion& conversion,
                       std::byte* out, std::size_t stride) {
  const auto null = conversion.null == NullValue::kNan ? nan_bits<Bits>(conversion.from) : std::nullopt;
  return copy_as<Bits, Bits>(run, rows, null, out, stride);
}

Result<void> copy_same(const NumberRun& run, std::span<const GatheredRow> rows, const NumberConversion& conversion,
                       std::byte* out, std::size_t stride) {
  switch (size_of(conversion.from)) {
    case 1:
      return copy_bits<std::uint8_t>(run, rows, conversion, out, stride);
    case 2:
      return copy_bits<std::uint16_t>(run, rows, conversion, out, stride);
    case 4:
      return copy_bits<std::uint32_t>(run, rows, conversion, out, stride);
    default:
      return copy_bits<std::uint64_t>(run, rows, conversion, out, stride);
  }
}

Result<void> copy_lists(const NumberRun& run, std::span<const GatheredRow> rows, const NumberConversion& conversion,
                        std::byte* out, std::size_t stride) {
  const std::size_t width = size_of(conversion.from), bytes = conversion.elements * width;
  const std::uint64_t numbers = run.values.size() / width;
  if (run.list_begins.empty() && run.elements != conversion.elements)
    return data_error("a list has a different number of elements", "format");
  for (const GatheredRow& row : rows) {
    const std::uint64_t i = row.row - run.begin;
    if (!run.valid.empty() && !is_valid(run.valid, i)) return no_value();
    std::uint64_t begin = i * run.elements;
    if (!run.list_begins.empty()) {
      FEEDLINE_CHECK(i + 1 < run.list_begins.size());
      begin = run.list_begins[i];
      if (run.list_begins[i + 1] - begin != conversion.elements)
        return data_error("a list has a different number of elements", "format");
    }
    if (begin > numbers || numbers - begin < conversion.elements)
      return data_error("a list extends beyond the stored numbers", "format");
    if (bytes > 0) std::memcpy(out + row.to * stride, run.values.data() + begin * width, bytes);
  }
  return {};
}

}  // namespace

Result<void> copy_numbers(const NumberRun& run, std::span<const GatheredRow> rows, const NumberConversion& conversion,
                          std::byte* out, std::size_t stride) {
  FEEDLINE_CHECK(rows.empty() || (rows.front().row >= run.begin && rows.back().row < run.end));
  if (conversion.null == NullValue::kFlag) {
    const auto flag = [&](const GatheredRow& row, bool is_there) { out[row.to * stride] = std::byte{is_there}; };
    each_number(
        run, rows, [&](const GatheredRow& row, std::uint64_t) { flag(row, true); },
        [&](const GatheredRow& row) { return flag(row, false), true; });
    return {};
  }
  if (!run.list_begins.empty() || run.elements != 1 || conversion.elements != 1)
    return copy_lists(run, rows, conversion, out, stride);
  if (conversion.from == conversion.to) return copy_same(run, rows, conversion, out, stride);
  const bool has_nan = conversion.null == NullValue::kNan;
  switch (conversion.to) {
    case DType::kInt64:
      return copy_to<std::int64_t>(conversion.from, run, rows, std::nullopt, out, stride);
    case DType::kFloat32:
      return copy_to<float>(conversion.from, run, rows,
                            has_nan ? std::optional(std::numeric_limits<float>::quiet_NaN()) : std::nullopt, out,
                            stride);
    default:
      FEEDLINE_CHECK(conversion.to == DType::kFloat64);
      return copy_to<double>(conversion.from, run, rows,
                             has_nan ? std::optional(std::numeric_limits<double>::quiet_NaN()) : std::nullopt, out,
                             stride);
  }
}

}  // namespace feedline::format
