// SPDX-License-Identifier: Apache-2.0
#pragma once

// Datasets from columns of paths, text and numbers in memory that the caller owns, such as the columns of a data frame.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline {

// Text in the caller's memory, one cell per row. Nothing is copied.
struct TextCells {
  // Separate strings, such as Python's.
  struct Scattered {
    std::vector<const char*> starts;
    std::vector<std::uint32_t> lengths;
  };
  // Consecutive strings and their offsets, as in Arrow: cell i of a chunk is the range [offsets[i], offsets[i + 1]) of
  // data.
  struct Chunk {
    std::uint64_t end = 0;  // the number of rows up to the end of this chunk
    const std::byte* offsets = nullptr;
    bool are_wide = false;  // 64-bit offsets instead of 32-bit ones
    std::string_view data;
  };
  // Arrow's string views: 16 bytes per cell with the length of the text, and either the text itself or its buffer and
  // offset.
  struct ViewChunk {
    std::uint64_t end = 0;  // the number of rows up to the end of this chunk
    const std::byte* views = nullptr;
    std::vector<std::string_view> buffers;
  };
  // UTF-32 text of a fixed width, padded with zeros, as in NumPy's string arrays.
  struct FixedWidth {
    const std::byte* data = nullptr;
    std::ptrdiff_t stride = 0;  // bytes
    std::size_t characters = 0;
  };
  // Integers, converted to decimal text.
  struct Integers {
    const std::byte* data = nullptr;
    std::ptrdiff_t stride = 0;  // bytes
    DType dtype = DType::kInt64;
  };

  std::uint64_t rows = 0;
  std::variant<Scattered, std::vector<Chunk>, std::vector<ViewChunk>, FixedWidth, Integers> form;
  std::shared_ptr<const void> owner;  // owns the memory
};
// Fails with kData, naming the row, if an offset or a length is outside the text, as in a damaged Arrow file. Requires:
// the offsets and views of all rows are readable.
Result<void> check(const TextCells& cells);

// Files whose paths or URLs consist of cells and fixed text: "train/" + cell + ".jpg".
struct FileColumn {
  std::string name;
  std::string kind;                   // as in OpenOptions::fields: "image", "mask", ...
  std::string root;                   // the folder of relative paths; empty: the working directory
  std::vector<std::string> literals;  // the text before each of `cells`, and after the last one
  std::vector<std::shared_ptr<const TextCells>> cells;
  // If each row has a list of files, row i has the cells [offsets[i], offsets[i + 1]), and the field is file number
  // `position` of the list. Rows with shorter lists lack the field.
  std::shared_ptr<const std::vector<std::int64_t>> offsets = nullptr;
  std::uint64_t position = 0;
  // For "audio": the part of each row's file, in seconds; a negative duration is the rest of the file. Empty: all of
  // it.
  std::vector<double> begins = {}, durations = {};
  // For "audio": the only channel of the row's file to deliver; -1: all. Empty: all of all files.
  std::vector<std::int32_t> channels = {};
};
struct TextColumn {
  std::string name;
  std::shared_ptr<const TextCells> cells;
};
// NamedArray::kind: "value" (an integer of 64 bits), "array", "boxes" or "keypoints".
struct NumberColumn {
  NamedArray array;
};
// Class indexes of each row, as a ragged int32 array, delivered as multi-hot float32 vectors of shape (classes).
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

// Returns a dataset whose fields are columns of equal length and whose samples are their rows. Files are read when
// samples are read. Local paths and URLs may be mixed. Fails with kConfig if there are no columns or no rows, columns
// have different lengths, two fields have the same name, a kind does not match its column, or offsets of lists are
// invalid, and with kData as check().
Result<Dataset> rows(RowOptions options);

// A column of a table file.
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
// Reads a table from one or more .csv, .tsv, .jsonl, .json or .parquet files, which may be compressed or remote. Fails
// with kConfig if the source is not a table, and with kData if it is damaged.
Result<TableCells> read_table(const std::string& source);

// ---- episodes ----

// Recordings in time, such as those of robots: rows of numbers, and frames of videos or images. A sample is a row, or a
// window of rows around it, which does not cross the boundaries of its episode.

// The rows of a field, relative to the sample's row; rows outside the episode are replaced by its first or last row.
// nullopt: the sample's row, without an axis for rows.
using EpisodeSteps = std::optional<std::vector<std::int64_t>>;

// NamedArray::kind: "value" (an integer of up to 64 bits, without steps) or "array".
struct EpisodeNumbers {
  NamedArray array;  // one row for each row of the dataset
  EpisodeSteps steps;
};
// For each step, whether its row is outside the episode.
struct EpisodePads {
  std::string name;
  std::vector<std::int64_t> steps;
};
struct EpisodeTexts {
  std::string name;
  std::shared_ptr<const TextCells> cells;
  NamedArray cell_of_row;  // int64; without rows, each row has its own cell
};
// Frames of video files that contain one or more episodes.
struct EpisodeVideos {
  std::string name;
  std::shared_ptr<const TextCells> paths;  // of each episode, relative to the dataset's folder
  std::vector<double> begins;              // of each episode: seconds from the first frame of its file
  NamedArray times;                        // float32 or float64: of each row, seconds from the start of its episode
  double tolerance = 0;                    // a frame may differ from its time by fewer seconds than this
  EpisodeSteps steps;
  std::optional<Size> size;  // of all frames, if known
};
// Encoded images of another dataset, which has the same rows.
struct EpisodeImages {
  std::string name;
  Dataset images;
  std::string field;
  EpisodeSteps steps;
  std::optional<Size> size;
};
using EpisodeColumn = std::variant<EpisodeNumbers, EpisodePads, EpisodeTexts, EpisodeVideos, EpisodeImages>;

struct EpisodeOptions {
  std::string source;              // the dataset's folder or its URL
  std::string format;              // the dataset's name of the format
  std::vector<std::int64_t> ends;  // of each episode: the number of rows up to its end
  std::vector<EpisodeColumn> columns;
  std::vector<UnopenedColumn> unopened = {};
  OpenOptions options;  // of these, only the cache and `hedge` apply
};

// Returns a dataset whose fields are the columns. kConfig: there are no rows or columns, columns differ in length, two
// fields have the same name, or a column does not have the required type.
Result<Dataset> episodes(EpisodeOptions options);

}  // namespace feedline
