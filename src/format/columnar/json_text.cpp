// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/json_text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "memory/number.h"
#include "text/utf8.h"

namespace feedline::format {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

double real_of(DType dtype, memory::HalfBits half) {
  if (dtype == DType::kBfloat16) return std::bit_cast<float>(std::uint32_t{half.bits} << 16U);
  constexpr unsigned kFractionBits = 10, kMostExponent = 31, kBias = 15;
  const unsigned exponent = half.bits >> kFractionBits & kMostExponent;
  const double fraction = half.bits & ((1U << kFractionBits) - 1);
  const double sign = (half.bits & 0x8000U) != 0 ? -1.0 : 1.0;
  if (exponent == kMostExponent) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  constexpr int kScale = kBias + kFractionBits;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - kScale);
  return sign * std::ldexp(fraction + (1U << kFractionBits), static_cast<int>(exponent) - kScale);
}

void append_real(double value, std::string& json) {
  if (std::isnan(value)) return json.append("NaN"), void();
  if (std::isinf(value)) return json.append(value < 0 ? "-Infinity" : "Infinity"), void();
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.begin(), text.end(), value).ptr;
  const std::string_view written(text.begin(), end);
  json += written;
  if (written.find_first_of(".e") == written.npos) json += ".0";
}

}  // namespace

Result<void> append_json_text(std::span<const std::byte> text, std::string& json) {
  FEEDLINE_CHECK_OK(text::check_utf8(text));
  json += '"';
  for (const std::byte byte : text) {
    const auto character = std::to_integer<unsigned char>(byte);
    if (character == '"' || character == '\\') {
      json += '\\';
      json += static_cast<char>(character);
    } else if (character < ' ') {
      json += "\\u00";
      json += kDigits[character >> 4U];
      json += kDigits[character & 0xfU];
    } else {
      json += static_cast<char>(character);
    }
  }
  json += '"';
  return {};
}

void append_json_number(DType dtype, std::span<const std::byte> bytes, std::string& json) {
  memory::with_number(dtype, bytes, [&](auto number) {
    using Number = decltype(number);
    if constexpr (std::is_same_v<Number, bool>) {
      json += number ? "true" : "false";
    } else if constexpr (std::is_integral_v<Number>) {
      json += std::to_string(number);
    } else if constexpr (std::is_same_v<Number, memory::HalfBits>) {
      append_real(real_of(dtype, number), json);
    } else {
      append_real(static_cast<double>(number), json);
    }
  });
}

}  // namespace feedline::format
