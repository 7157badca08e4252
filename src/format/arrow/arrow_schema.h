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
  kNothing,        // no buffers
  kFixed,          // validity, values of `bits` bits
  kBinary,         // validity, offsets of 4 bytes, bytes
  kLargeBinary,    // validity, offsets of 8 bytes, bytes
  kList,           // validity, offsets of 4 bytes; one child
  kLargeList,      // validity, offsets of 8 bytes; one child
  kFixedList,      // validity; one child, `list_size` of it for each
  kListView,       // validity, offsets and sizes of 4 bytes; one child
  kLargeListView,  // validity, offsets and sizes of 8 bytes; one child
  kBinaryView,     // validity, views of 16 bytes, and the number of buffers of bytes given by the record batch
  kStruct,         // validity; children
  // these cannot be columns, but their buffers are between those of others
  kSparseUnion,  // types; children
  kDenseUnion,   // types, offsets; children
  kRunEnds,      // no buffers; two children
};
bool is_list(ArrowLayout layout);
bool is_binary(ArrowLayout layout);

struct ArrowField {
  std::string name;
  ArrowLayout layout = ArrowLayout::kNothing;
  std::uint64_t bits = 0;
  std::optional<DType> dtype = {};  // of kFixed, where it is a number that an array may have
  bool is_text = false;
  bool is_known = true;         // false: a decimal, an interval and so on
  std::string unit = {};        // of times
  std::string meaning = {};     // see ColumnType
  std::string extension = {};   // name of the extension type that has this type as storage
  std::string parameters = {};  // of the extension type, serialized
  std::uint64_t list_size = 0;
  std::string shown = {};                       // "list of float"
  std::optional<std::int64_t> dictionary = {};  // the id of its values, of which it has indices
  std::uint64_t index_bytes = 0;                // of these
  bool is_signed_index = true;
  std::vector<ArrowField> children = {};
};

// The path to a column's values: the top field, then a child of each struct, and the only child of each list that
// contains structs.
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

// Adds the columns of the `number`-th top field.
void add_columns(const ArrowField& field, std::size_t number, std::vector<ArrowColumn>& columns);

// Of a Schema table. kData: it does not fit into its bytes, or is nested too deeply; kConfig: of another byte order, or
// of types that this version does not know the layout of.
Result<ArrowSchema> read_arrow_schema(const FlatTable& schema, const FlatBuffer& buffer);

}  // namespace feedline::format
