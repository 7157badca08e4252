// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: prints samples as text, for comparison with the data written.

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "format/format.h"
#include "memory/record.h"

namespace feedline::format {

// Returns the shape and the numbers of an array as text. Floats are multiplied by ten and truncated.
inline std::string shown_numbers(const ArraySpec& spec, std::span<const std::byte> bytes) {
  std::string text = spec.shape.to_string() + ":";
  EXPECT_EQ(bytes.size(), spec.bytes());
  for (std::size_t at = 0; at + size_of(spec.dtype) <= bytes.size(); at += size_of(spec.dtype)) {
    float real = 0;
    double wide = 0;
    std::int64_t whole = 0;
    void* const out = spec.dtype == DType::kFloat32   ? static_cast<void*>(&real)
                      : spec.dtype == DType::kFloat64 ? static_cast<void*>(&wide)
                                                      : static_cast<void*>(&whole);
    std::memcpy(out, bytes.data() + at, size_of(spec.dtype));
    text += (at == 0 ? "" : ",") +
            std::to_string(whole + static_cast<std::int64_t>(10 * (static_cast<double>(real) + wide)));
  }
  return text;
}

// Returns the fields as text, separated by spaces: a number, a shape and numbers, bytes, or "-" if the field is absent.
inline std::string shown_sample(const RecordFormat& format, std::uint64_t index) {
  memory::Record record;
  if (const auto read = format.read(index, record); !read) return "error: " + read.error().message();
  std::string text;
  for (std::size_t i = 0; i < record.fields.size(); ++i) {
    const memory::Record::Field& field = record.fields[i];
    text += i == 0 ? "" : " ";
    if (field.absent)
      text += "-";
    else if (field.array)
      text += shown_numbers(*field.array, field.bytes);
    else if (format.fields()[i].kind == FieldKind::kInteger)
      text += std::to_string(field.value);
    else
      text += std::string(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
  }
  return text;
}

// Returns all samples as text, separated by "|".
inline std::string shown_samples(const Result<std::shared_ptr<const RecordFormat>>& format) {
  if (!format) return "error: " + format.error().message();
  std::string text;
  for (std::uint64_t i = 0; i < (*format)->size(); ++i) text += (i == 0 ? "" : "|") + shown_sample(**format, i);
  return text;
}

}  // namespace feedline::format
