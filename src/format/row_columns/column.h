// SPDX-License-Identifier: Apache-2.0
#pragma once

// The columns of formats whose samples are concatenated typed values:
//
//     u32 size of each value whose column has no fixed size     little-endian
//     the values, in the order of the columns
//
// MDS and LitData store samples in this way, with their own names for the types.

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
  kPixels,   // u32 width, u32 height, u32 size of the mode's name; the name; rows of pixels: Pillow's tobytes()
  kImages,   // several image files: u32 count, u32 size of each, the files; with `is_listed` after a u32 of 0
  kNumber,   // a single number of `dtype`
  kDigits,   // an integer as text
  kReal,     // any number as text
  kArray,    // numbers after a header of type `header`
  kRefused,  // unsafe or unsupported; `encoding` names the type
};

// The header that precedes the numbers of an array.
enum class ArrayHeader : std::uint8_t {
  kNothing,  // dtype and shape come from the column; without a shape there is one dimension
  kMds,      // u8 dtype, unless the column has one; u8 dims * 4 + log2 of an extent's size, and the extents, unless it
             // has a shape
  kTensor,   // LitData's header for torch: u32 dtype, u32 dims, u32 extents, all big-endian
  kNumpy,    // LitData's header for NumPy: the same in little-endian
};

struct Column {
  std::string name;
  std::string encoding;  // the dataset's name for the type
  ColumnKind kind = ColumnKind::kBytes;
  std::optional<std::uint32_t> fixed_bytes = {};  // size of every value, which is then not stored
  std::optional<DType> dtype = {};
  std::optional<Shape> shape = {};
  ArrayHeader header = ArrayHeader::kNothing;
  bool is_listed = false;  // for kImages

  friend bool operator==(const Column&, const Column&) = default;
};
using Columns = std::vector<Column>;

// Returns a list of the first few columns, such as "image (jpeg), label (int)".
std::string names_of(const Columns& columns);

struct ColumnChoice {
  FieldDescription description;
  std::size_t column = 0;
};

// Returns one field per spec, "COLUMN" or "NAME=COLUMN:KIND". If a spec has alternatives ("jpg;png"), uses the first
// column that exists. Without specs, returns the image and the label if exactly one column can be the image, otherwise
// all columns. Fails with kConfig if a column is unknown, refused or cannot be converted to the kind of its spec, or if
// two fields have the same name.
Result<std::vector<ColumnChoice>> choose_columns(const std::vector<std::string>& specs, const Columns& columns);

}  // namespace feedline::format
