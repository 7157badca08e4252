// SPDX-License-Identifier: Apache-2.0
#pragma once

// The schema of an Arrow file: a tree of fields, and the columns that can be fields of samples.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/arrow/flat_table.h"
#include "format/columnar/column.h"

namespace feedline::format {

// The memory layout of a field: its buffers and children.
enum class ArrowLayout : std::uint8_t {
  kNothing,        // no buffers
  kFixed,          // validity, values of `bits` bits
  kBinary,         // validity, offsets of 4 bytes, bytes
  kLargeBinary,    // validity, offsets of 8 bytes, bytes
  kList,           // validity, offsets of 4 bytes; one child
  kLargeList,      // validity, offsets of 8 bytes; one child
  kFixedList,      // validity; one child, with `list_size` elements for each value
  kListView,       // validity, offsets and sizes of 4 bytes; one child
  kLargeListView,  // validity, offsets and sizes of 8 bytes; one child
  kBinaryView,     // validity, views of 16 bytes, and the number of buffers of bytes given by the record batch
  kStruct,         // validity; children
  // The layouts below are not supported for columns; they are only used to skip buffers.
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
  std::optional<DType> dtype = {};  // for kFixed, if it is a number type supported in arrays
  bool is_text = false;
  bool is_known = true;         // false for decimals, intervals and so on
  std::string unit = {};        // for times
  std::string meaning = {};     // see ColumnType
  std::string extension = {};   // name of the extension type with this storage type
  std::string parameters = {};  // serialized parameters of the extension type
  std::uint64_t list_size = 0;
  std::string shown = {};                       // for messages, such as "list of float"
  std::optional<std::int64_t> dictionary = {};  // the id of the dictionary, if the field has indices into it
  std::uint64_t index_bytes = 0;                // signedness of the indices
  bool is_signed_index = true;
  std::vector<ArrowField> children = {};
};

// A column and the path to its values: the index of the top-level field, then the index of the child in each struct,
// and 0 for each list that contains structs.
struct ArrowColumn {
  ColumnType type;  // if it is nested, the path ends at the outermost list or map
  std::vector<std::size_t> path;
};

struct ArrowSchema {
  std::vector<ArrowField> fields;
  std::vector<ArrowColumn> columns;

  // Returns the field that a column belongs to.
  const ArrowField& field_of(const ArrowColumn& column) const;
};

// Adds the columns of top-level field number `number`.
void add_columns(const ArrowField& field, std::size_t number, std::vector<ArrowColumn>& columns);

// Parses a Schema table. Fails with kData if the table exceeds its bounds or is nested too deeply, and with kConfig if
// the file has big-endian numbers or types with an unknown layout.
Result<ArrowSchema> read_arrow_schema(const FlatTable& schema, const FlatBuffer& buffer);

}  // namespace feedline::format
