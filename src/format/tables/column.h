// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a column of a table holds, and where one value of it is: what Arrow and Parquet files have in common.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "feedline/array.h"

namespace feedline::format {

enum class Holds : std::uint8_t {
  kNumbers,  // one, or lists of them
  kBytes,    // a byte string
  kText,     // one in UTF-8
  kNothing,  // every row lacks a value
  kOther,    // what no field is made of
};

struct ColumnType {
  std::string name;  // of a member of a struct: "objects.bbox"
  Holds holds = Holds::kOther;
  DType dtype = DType::kUint8;
  Shape lists = {};                       // of numbers: extents of the lists, outermost first; kAnyLength: they differ
  std::string shown = {};                 // "list of float32", "map"
  bool is_file = false;                   // of bytes: those of a struct of `bytes` and `path`
  bool is_image = false;                  // by the file's schema or its first values
  bool is_json = false;                   // of text: a JSON document, by the schema
  std::vector<std::string> classes = {};  // of integers that stand for names
  // For tensors: the extents into which the elements of the innermost list are arranged, and the order of these
  // dimensions in samples. No extents: not a tensor. No order: the order of the extents.
  Shape tensor = {};
  std::vector<std::uint8_t> order = {};
  std::string unit = {};     // of times, durations: "us"
  std::string meaning = {};  // a part of the schema that is not applied: "timestamp[us, tz=UTC]", "extension type x.y"
};

// The extents of a column's tensors in the order of samples. Requires: it holds tensors.
Shape samples_shape(const ColumnType& column);
// "int64, timestamp[us]".
std::string described(const ColumnType& column);
// May rows of both be samples of one dataset? Otherwise the schema changes between files.
bool have_same_values(const ColumnType& a, const ColumnType& b);

// Where a value is, as far as that is known without a read.
struct CellPlace {
  enum class In : std::uint8_t {
    kNull,    // there is none
    kMemory,  // `held`, as long as its table
    kFile,    // `bytes` bytes of the file from `offset` on
    kPacked,  // among others, which are decompressed together
  };
  In in = In::kNull;
  std::span<const std::byte> held = {};
  std::uint64_t offset = 0, bytes = 0;
  Shape shape = {};  // of numbers
};

// A value. Numbers are little-endian, in C order.
struct TableCell {
  bool is_null = false;
  std::span<const std::byte> bytes = {};
  Shape shape = {};  // of numbers
};

}  // namespace feedline::format
