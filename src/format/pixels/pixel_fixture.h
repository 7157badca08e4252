// SPDX-License-Identifier: Apache-2.0
#pragma once

// Synthetic contents and records of pixel files for tests.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/pixels/pixel_record.h"
#include "format/pixels/pixel_store.h"

namespace feedline::format {

inline PixelContents some_contents(std::uint64_t samples, const std::string& preparation = "RGB") {
  return {17, samples, preparation, {{"image", FieldKind::kImage}, {"label", FieldKind::kInteger}}, {"cat", "dog"},
          "a"};
}

// These functions return the size of a sample, and its pixel `i`.
inline int width_of(std::uint64_t sample) { return 1 + static_cast<int>(sample * 7 % 40); }
inline int height_of(std::uint64_t sample) { return 1 + static_cast<int>(sample * 5 % 30); }
inline std::byte pixel_of(std::uint64_t sample, std::size_t i) { return std::byte(sample * 31 + i * 7 + (i >> 8)); }
inline std::string key_text(std::uint64_t sample) { return "dog/" + std::to_string(sample) + ".jpg"; }

inline std::vector<std::byte> made_record(std::uint64_t sample) {
  PixelRecordBuilder builder;
  builder.begin(sample, key_text(sample), 2);
  const auto pixels = builder.add_image(width_of(sample), height_of(sample), 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = pixel_of(sample, i);
  builder.add_integer(static_cast<std::int64_t>(sample) - 3);
  const auto record = builder.finish();
  return {record.begin(), record.end()};
}

// Returns whether the record equals the result of made_record().
inline bool is_as_made(const memory::Record& record, std::uint64_t sample) {
  const memory::PixelView& view = record.fields[0].pixels;
  if (view.width != width_of(sample) || view.height != height_of(sample) || view.channels != 3) return false;
  const std::size_t bytes = view.stride * static_cast<std::size_t>(view.height);
  for (std::size_t i = 0; i < bytes; ++i)
    if (std::byte{view.data[i]} != pixel_of(sample, i)) return false;
  return record.fields[1].value == static_cast<std::int64_t>(sample) - 3;
}

inline bool has(PixelStore& store, std::uint64_t sample) {
  memory::Record record;
  const auto read = store.read(sample, record);
  EXPECT_TRUE(read) << read.error().message();
  if (!read || !*read) return false;
  EXPECT_TRUE(is_as_made(record, sample)) << "sample " << sample;
  return true;
}

}  // namespace feedline::format
