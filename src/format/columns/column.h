// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a column of a sample holds, in formats whose samples are typed values one behind the other:
//
//     u32 bytes of each value whose column has no fixed size     little-endian
//     the values, in the order of the columns
//
// MDS and LitData store samples so; what they call the types is theirs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feedline/array.h"
#include "format/format.h"

namespace feedline::format {

enum class ColumnKind : std::uint8_t {
  kBytes,
  kText,
  kJson,
  kImage,    // an image file
  kPixels,   // u32 width, height and bytes of the mode's name; the name; rows of pixels: Pillow's tobytes()
  kImages,   // several image files: u32 count, u32 bytes of each, the files; `is_listed`: behind a u32 of 0
  kNumber,   // one, of `dtype`
  kDigits,   // an integer as text
  kReal,     // any number as text
  kArray,    // numbers behind a header of `header`
  kRefused,  // what must not or cannot be read: `encoding` says what
};

// What stands before the numbers of an array.
enum class ArrayHeader : std::uint8_t {
  kNothing,  // shape and dtype are the column's; without a shape they have one dimension
  kMds,      // u8 dtype, where the column has none; u8 dims * 4 + log2 of an extent's bytes, and the extents, likewise
  kTensor,   // LitData's of torch: u32 dtype, u32 dims, u32 extents, all big-endian
  kNumpy,    // LitData's of NumPy: the same in little-endian
};

struct Column {
  std::string name;
  std::string encoding;  // as the dataset calls it
  ColumnKind kind = ColumnKind::kBytes;
  std::optional<std::uint32_t> fixed_bytes = {};  // of every value: no u32 says it
  std::optional<DType> dtype = {};
  std::optional<Shape> shape = {};
  ArrayHeader header = ArrayHeader::kNothing;
  bool is_listed = false;  // of kImages

  friend bool operator==(const Column&, const Column&) = default;
};
using Columns = std::vector<Column>;

// "image (jpeg), label (int)", the first few.
std::string names_of(const Columns& columns);

struct ColumnChoice {
  FieldDescription description;
  std::size_t column = 0;
};

// One field per spec, "COLUMN", "NAME=COLUMN:KIND"; alternatives ("jpg;png") are the first of them that there is.
// None: the image and, where there is one, the label, where one column alone can be the image; else all columns.
// kConfig: no such column, one that is refused, or that cannot be what the spec says; two fields of one name.
Result<std::vector<ColumnChoice>> choose_columns(const std::vector<std::string>& specs, const Columns& columns);

}  // namespace feedline::format
