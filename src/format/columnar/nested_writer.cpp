// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/nested_writer.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/check.h"
#include "base/nested_mark.h"
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

}  // namespace

NestedWriter::NestedWriter(bool is_binary) : is_binary_(is_binary) {
  if (is_binary) out_ = base::kNestedMark;
}

void NestedWriter::separate() {
  if (has_previous_ && !is_binary_) out_ += ", ";
  has_previous_ = true;
}

void NestedWriter::begin(char json, char binary) {
  separate();
  out_ += is_binary_ ? binary : json;
  has_previous_ = false;
}

void NestedWriter::end(char json) {
  out_ += is_binary_ ? 'e' : json;
  has_previous_ = true;
}

void NestedWriter::append_raw(char tag, const void* value, std::size_t bytes) {
  out_ += tag;
  out_.append(static_cast<const char*>(value), bytes);
}

void NestedWriter::append_sized(std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  out_.append(reinterpret_cast<const char*>(&size), sizeof size);
  out_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void NestedWriter::append_quoted(std::span<const std::byte> text) {
  out_ += '"';
  for (const std::byte byte : text) {
    const auto character = std::to_integer<unsigned char>(byte);
    if (character == '"' || character == '\\') {
      out_ += '\\';
      out_ += static_cast<char>(character);
    } else if (character < ' ') {
      out_ += "\\u00";
      out_ += kDigits[character >> 4U];
      out_ += kDigits[character & 0xfU];
    } else {
      out_ += static_cast<char>(character);
    }
  }
  out_ += '"';
}

void NestedWriter::append_real(double value) {
  if (is_binary_) return append_raw('d', &value, sizeof value);
  if (std::isnan(value)) return out_.append("NaN"), void();
  if (std::isinf(value)) return out_.append(value < 0 ? "-Infinity" : "Infinity"), void();
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.begin(), text.end(), value).ptr;
  const std::string_view written(text.begin(), end);
  out_ += written;
  if (written.find_first_of(".e") == written.npos) out_ += ".0";
}

void NestedWriter::null() {
  separate();
  out_ += is_binary_ ? "n" : "null";
}

Result<void> NestedWriter::text(std::span<const std::byte> text) {
  FEEDLINE_CHECK_OK(text::check_utf8(text));
  separate();
  if (!is_binary_) return append_quoted(text), Result<void>();
  out_ += 's';
  append_sized(text);
  return {};
}

void NestedWriter::bytes(std::span<const std::byte> bytes) {
  FEEDLINE_CHECK(is_binary_);
  out_ += 'b';
  append_sized(bytes);
}

Result<void> NestedWriter::key(std::span<const std::byte> name) {
  FEEDLINE_CHECK_OK(text::check_utf8(name));
  separate();
  if (is_binary_) {
    out_ += 'k';
    append_sized(name);
    return {};
  }
  append_quoted(name);
  out_ += ": ";
  has_previous_ = false;
  return {};
}

void NestedWriter::number(DType dtype, std::span<const std::byte> bytes) {
  separate();
  memory::with_number(dtype, bytes, [&](auto number) {
    using Number = decltype(number);
    if constexpr (std::is_same_v<Number, bool>) {
      out_ += is_binary_ ? number ? "t" : "f" : number ? "true" : "false";
    } else if constexpr (std::is_integral_v<Number>) {
      if (!is_binary_) return out_.append(std::to_string(number)), void();
      using Wide = std::conditional_t<std::is_signed_v<Number>, std::int64_t, std::uint64_t>;
      const Wide wide = number;
      append_raw(std::is_signed_v<Number> ? 'i' : 'u', &wide, sizeof wide);
    } else if constexpr (std::is_same_v<Number, memory::HalfBits>) {
      append_real(real_of(dtype, number));
    } else {
      append_real(static_cast<double>(number));
    }
  });
}

}  // namespace feedline::format
