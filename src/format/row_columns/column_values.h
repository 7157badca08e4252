// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses stored values of columns in place. Sizes in their headers are checked against the bytes available.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feedline/array.h"
#include "format/row_columns/column.h"
#include "memory/pixels.h"

namespace feedline::format {

// A parsed value, or a sentence about why the value is invalid.
template <typename T>
using Parsed = std::expected<T, std::string>;

// Converts LitData's dtype codes. Returns nullopt for dtypes that Feedline does not support.
std::optional<DType> tensor_dtype(std::uint64_t code);
std::optional<DType> numpy_dtype(std::uint64_t code);

struct StoredArray {
  ArraySpec spec;
  std::span<const std::byte> data;  // in C order, possibly unaligned
};
// Requires: kArray.
Parsed<StoredArray> array_in(std::span<const std::byte> value, const Column& column);
// Returns a number as an array without dimensions. Requires: kNumber.
Parsed<StoredArray> number_in(std::span<const std::byte> value, const Column& column);
// Returns an integer or a boolean. Requires: the value has the size of its dtype.
Parsed<std::int64_t> integer_of(DType dtype, std::span<const std::byte> number);

struct StoredPixels {
  std::string mode;  // Pillow's mode, such as "RGB"
  std::int64_t width = 0, height = 0;
  std::span<const std::byte> data;
};
Parsed<StoredPixels> pixels_in(std::span<const std::byte> value);
// Returns the pixels as an image. Supports only the modes "L" and "RGB".
Parsed<memory::PixelView> view_of(const StoredPixels& pixels);
// Returns the pixels as an array (height, width) or (height, width, channels).
Parsed<StoredArray> array_of(const StoredPixels& pixels);

// Returns the image files of a kImages value.
Parsed<std::vector<std::span<const std::byte>>> images_in(std::span<const std::byte> value, bool is_listed);

}  // namespace feedline::format
