// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stored values of columns, read where they lie. Nothing is taken from their headers that their bytes do not bear out.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feedline/array.h"
#include "format/columns/column.h"
#include "memory/pixels.h"

namespace feedline::format {

// Why a value is none: a sentence about it.
template <typename T>
using Parsed = std::expected<T, std::string>;

// LitData's numbers of dtypes; nullopt: one that Feedline does not have.
std::optional<DType> tensor_dtype(std::uint64_t code);
std::optional<DType> numpy_dtype(std::uint64_t code);

struct StoredArray {
  ArraySpec spec;
  std::span<const std::byte> data;  // C order, maybe unaligned
};
// Requires: kArray.
Parsed<StoredArray> array_in(std::span<const std::byte> value, const Column& column);
// Requires: kNumber. An array without extents.
Parsed<StoredArray> number_in(std::span<const std::byte> value, const Column& column);
// Of an integer or a truth value. Requires: the bytes of one.
Parsed<std::int64_t> integer_of(DType dtype, std::span<const std::byte> number);

struct StoredPixels {
  std::string mode;  // Pillow's: "RGB"
  std::int64_t width = 0, height = 0;
  std::span<const std::byte> data;
};
Parsed<StoredPixels> pixels_in(std::span<const std::byte> value);
// As the pixels of an image: of the modes "L" and "RGB" alone.
Parsed<memory::PixelView> view_of(const StoredPixels& pixels);
// As an array (height, width) or (height, width, channels).
Parsed<StoredArray> array_of(const StoredPixels& pixels);

// The files of kImages.
Parsed<std::vector<std::span<const std::byte>>> images_in(std::span<const std::byte> value, bool is_listed);

}  // namespace feedline::format
