// SPDX-License-Identifier: Apache-2.0
#pragma once

// Datasets of rows in memory: columns of paths, text and numbers that the caller owns, such as those of a data frame.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"

namespace feedline {

// Text in the caller's memory, one cell per row. Nothing is copied.
struct TextCells {
  // Separate strings, such as Python's.
  struct Scattered {
    std::vector<const char*> starts;
    std::vector<std::uint32_t> lengths;
  };
  // Consecutive strings and their offsets, as in Arrow: cell i of a chunk is data[offsets[i]] to data[offsets[i + 1]].
  struct Chunk {
    std::uint64_t end = 0;  // the number of rows up to the end of this chunk
    const std::byte* offsets = nullptr;
    bool are_wide = false;  // 64-bit offsets instead of 32-bit ones
    const char* data = nullptr;
  };
  // Arrow's string views: 16 bytes per cell, with the length, and the text or a buffer and an offset in it.
  struct ViewChunk {
    std::uint64_t end = 0;  // the number of rows up to the end of this chunk
    const std::byte* views = nullptr;
    std::vector<const char*> buffers;
  };
  // UTF-32 of a fixed width, padded with zeros, as in NumPy's arrays of text.
  struct FixedWidth {
    const std::byte* data = nullptr;
    std::ptrdiff_t stride = 0;  // bytes
    std::size_t characters = 0;
  };
  // Integers, whose text is their decimal form.
  struct Integers {
    const std::byte* data = nullptr;
    std::ptrdiff_t stride = 0;  // bytes
    DType dtype = DType::kInt64;
  };

  std::uint64_t rows = 0;
  std::variant<Scattered, std::vector<Chunk>, std::vector<ViewChunk>, FixedWidth, Integers> form;
  std::shared_ptr<const void> owner;  // owns the memory
};

// Files whose paths or URLs are the cells' text, between fixed texts: "train/" + cell + ".jpg".
struct FileColumn {
  std::string name;
  std::string kind;                   // as in OpenOptions::fields: "image", "mask", ...
  std::string root;                   // the folder of relative paths; empty: the working directory
  std::vector<std::string> literals;  // the text before each of `cells`, and after the last one
  std::vector<std::shared_ptr<const TextCells>> cells;
  // If rows have lists of files, the cells of row i are those from offsets[i] to before offsets[i + 1], and the file is
  // number `position` of the list. Rows with shorter lists lack the field.
  std::shared_ptr<const std::vector<std::int64_t>> offsets = nullptr;
  std::uint64_t position = 0;
};
struct TextColumn {
  std::string name;
  std::shared_ptr<const TextCells> cells;
};
// NamedArray::kind: "value" (an integer of 64 bits), "array", "boxes" or "keypoints".
struct NumberColumn {
  NamedArray array;
};
// Numbers of classes, a ragged array of int32, delivered as float32 of shape (classes): 1 for each given class.
struct MultiHotColumn {
  NamedArray codes;
  std::uint64_t classes = 0;
};
using RowColumn = std::variant<FileColumn, TextColumn, NumberColumn, MultiHotColumn>;

struct RowOptions {
  std::string source;  // the dataset's name in messages
  std::vector<RowColumn> columns;
  std::vector<std::string> classes;            // names of the label's classes; empty if there are none
  std::shared_ptr<const TextCells> row_names;  // the caller's names of rows, for messages; nullptr: their positions
  std::vector<UnopenedColumn> unopened = {};   // the table's other columns
  OpenOptions options;                         // of these, only the cache and `hedge` apply
};

// A dataset whose samples are the rows of columns of equal length; each column is a field. Files are read when samples
// are. Local paths and URLs may be mixed. kConfig: there is no column or no row; columns have different lengths; a
// field's name is used twice; a kind does not match its column.
Result<Dataset> rows(RowOptions options);

// A column of a table's file.
struct TableColumnCells {
  std::string name;
  std::string holds;  // "integers", "numbers", "JSON", "bytes" or "text"; "nothing" if no row has a value
  std::shared_ptr<const TextCells> cells;
  std::vector<bool> absent;            // the rows without a value
  std::vector<std::int64_t> integers;  // the values, for "integers"
  std::vector<double> reals;           // the same for "numbers"; NaN in rows without a value
};
struct TableCells {
  std::string folder;  // of the first file, for relative paths in cells
  std::vector<TableColumnCells> columns;
  std::vector<UnopenedColumn> unread;  // columns of types that this function does not read
};
// Reads a table: .csv, .tsv, .jsonl, .json and .parquet files, also several of them, compressed or remote. kConfig: the
// source is not a table. kData: damage.
Result<TableCells> read_table(const std::string& source);

}  // namespace feedline
