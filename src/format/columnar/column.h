// SPDX-License-Identifier: Apache-2.0
#pragma once

// The type of a table's column, and the position of a value. Used for both Arrow and Parquet files.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::format {

enum class Holds : std::uint8_t {
  kNumbers,  // numbers, or lists of them
  kBytes,    // a byte string
  kText,     // a UTF-8 string
  kNothing,  // no row has a value
  kOther,    // a type that cannot be a field
};

struct ColumnType {
  std::string name;  // "objects.bbox" for a member of a struct
  Holds holds = Holds::kOther;
  DType dtype = DType::kUint8;
  Shape lists = {};        // for numbers: dimensions of the lists, outermost first; kAnyLength if they
                           // vary
  std::string shown = {};  // "list of float32", "map"
  bool is_file = false;    // bytes from a struct of `bytes` and `path`
  bool is_image = false;   // according to the file's schema or the first values
  bool is_audio = false;   // according to the schema
  bool is_video = false;   // according to the schema
  bool is_json = false;    // text that is a JSON document, according to the schema
  bool is_nested = false;  // lists or maps in NestedWriter's form
  // A nested column whose members are all numbers, which are columns as well. It is chosen only by its name.
  bool is_on_request = false;
  std::string nested_form = {};           // for lists of numbers: the nested column with the same values, or empty
  bool has_bytes = false;                 // a nested column with bytes: the binary form
  bool is_member = false;                 // numbers that are also part of a nested column
  std::vector<std::string> classes = {};  // for integers that are numbers of classes
  // The dimensions of the tensors in the innermost lists, and the order of these dimensions in samples. If there are no
  // dimensions, the column has no tensors. If there is no order, the dimensions are not reordered.
  Shape tensor = {};
  std::vector<std::uint8_t> order = {};
  std::string unit = {};  // unit of times and durations: "us"
  std::string meaning =
      {};  // a property of the schema that is not applied: "timestamp[us, tz=UTC]", "extension type x.y"
};

// Returns the shape of a column's tensors, with the dimensions in the order that samples have. Requires: the column has
// tensors.
Shape samples_shape(const ColumnType& column);
// Returns the error for a value of lists that is not an array; it names the nested column, if there is one.
std::unexpected<Error> not_an_array(const ColumnType& column, const std::string& how);
// Returns a description such as "int64, timestamp[us]".
std::string described(const ColumnType& column);
// Returns whether the rows of both columns can be samples of the same dataset. If not, the files have different
// schemas.
bool have_same_values(const ColumnType& a, const ColumnType& b);

// The position of a value, as far as it is known without reading the value.
struct CellLocation {
  enum class In : std::uint8_t {
    kNull,    // no value
    kMemory,  // in `held`, which is valid as long as its table
    kFile,    // `bytes` bytes of the file at `offset`
    kPacked,  // in a block that is decompressed as a whole
  };
  In in = In::kNull;
  std::span<const std::byte> held = {};
  std::uint64_t offset = 0, bytes = 0;
  Shape shape = {};  // for numbers
};

// A value. Numbers are little-endian, in C order.
struct TableCell {
  bool is_null = false;
  std::span<const std::byte> bytes = {};
  Shape shape = {};  // for numbers
};

}  // namespace feedline::format
