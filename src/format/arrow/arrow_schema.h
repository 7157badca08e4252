// SPDX-License-Identifier: Apache-2.0
#pragma once

// The schema of an Arrow file: its fields as a tree, and the columns that samples' fields are made of.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/arrow/flat_table.h"
#include "format/tables/column.h"

namespace feedline::format {

// How the values of a field lie in buffers.
enum class ArrowLayout : std::uint8_t {
  kNothing,      // no buffers
  kFixed,        // validity, values of `bits` bits
  kBinary,       // validity, offsets of 4 bytes, bytes
  kLargeBinary,  // validity, offsets of 8 bytes, bytes
  kList,         // validity, offsets of 4 bytes; one child
  kLargeList,    // validity, offsets of 8 bytes; one child
  kFixedList,    // validity; one child, `list_size` of it for each
  kStruct,       // validity; children
  // what no column is made of, but lies between others
  kSparseUnion,  // types; children
  kDenseUnion,   // types, offsets; children
  kListView,     // validity, offsets, sizes; one child
  kBinaryView,   // validity, views, and as many as a record batch says
  kRunEnds,      // no buffers; two children
};

struct ArrowField {
  std::string name;
  ArrowLayout layout = ArrowLayout::kNothing;
  std::uint64_t bits = 0;
  std::optional<DType> dtype = {};  // of kFixed, where it is a number that an array may have
  bool is_text = false;
  bool is_known = true;  // false: a decimal, an interval and so on
  std::uint64_t list_size = 0;
  std::string shown = {};                       // "list of float"
  std::optional<std::int64_t> dictionary = {};  // the id of its values, of which it has indices
  std::uint64_t index_bytes = 0;                // of these
  bool is_signed_index = true;
  std::vector<ArrowField> children = {};
};

// Where a column's values are: the field at the top, then a child of each struct.
struct ArrowColumn {
  ColumnType type;
  std::vector<std::size_t> path;
};

struct ArrowSchema {
  std::vector<ArrowField> fields;
  std::vector<ArrowColumn> columns;

  // The field of a column.
  const ArrowField& field_of(const ArrowColumn& column) const;
};

// Of a Schema table. kData: it does not fit into its bytes, or is nested too deeply; kConfig: of another byte order, or
// of types that this version does not know the layout of.
Result<ArrowSchema> read_arrow_schema(const FlatTable& schema, const FlatBuffer& buffer);

}  // namespace feedline::format
