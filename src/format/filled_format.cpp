// SPDX-License-Identifier: Apache-2.0
#include "format/filled_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace feedline::format {

namespace {

template <typename T>
void fill_as(std::byte* out, std::uint64_t count, const Element& value) {
  T number;
  std::memcpy(&number, value.data(), sizeof(T));
  std::fill_n(reinterpret_cast<T*>(out), count, number);
}

}  // namespace

FilledFormat::FilledFormat(std::vector<FieldDescription> fields, std::uint64_t sample_bytes)
    : fields_(std::move(fields)), grain_(grain_of(sample_bytes)) {}

Result<Inspection> FilledFormat::inspect() const {
  return config_error("inspect: " + std::string(name()) +
                      " cannot be inspected: their rows cannot be damaged, dropped or merged; Dataset.schema and "
                      "Dataset.explain() describe them");
}

void fill_elements(std::byte* out, std::uint64_t count, const Element& value, std::size_t bytes) {
  switch (bytes) {
    case 1:
      return fill_as<std::uint8_t>(out, count, value);
    case 2:
      return fill_as<std::uint16_t>(out, count, value);
    case 4:
      return fill_as<std::uint32_t>(out, count, value);
    default:
      FEEDLINE_CHECK(bytes == 8);
      return fill_as<std::uint64_t>(out, count, value);
  }
}

std::uint64_t grain_of(std::uint64_t sample_bytes) {
  constexpr std::uint64_t kBytes = 64 << 10;
  constexpr std::uint64_t kMost = 256;
  return std::clamp(kBytes / std::max<std::uint64_t>(sample_bytes, 1), std::uint64_t{1}, kMost);
}

}  // namespace feedline::format
