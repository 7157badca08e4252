// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/partitions.h"
#include "format/table/table.h"
#include "storage/storage.h"

namespace feedline::format {

// The location of a table and of the files that it names.
struct TablePlace {
  std::string path;
  std::string folder;      // base of relative paths in cells
  std::string class_name;  // class name, if the table is metadata in a class folder
};

// The files of one table, in order.
struct TablePlaces {
  std::vector<TablePlace> files;
  std::vector<Partition> partitions;  // separator of these files
  bool is_metadata = false;           // metadata.csv, .jsonl or .parquet in folders of images
};

// Finds tables given by names, patterns or a folder, or the metadata of a folder of images, in the folder itself or in
// each class folder; nullopt if the source has none. A remote folder is only listed if `is_asked_for`. kConfig: a
// folder has several metadata files, metadata of several splits, or metadata in only some class folders.
Result<std::optional<TablePlaces>> find_tables(const storage::Storage& storage, const std::string& source,
                                               bool is_asked_for);

// Returns whether a .json file contains JSON lines or an array of objects. Compressed and remote files are not read;
// only their names are checked.
bool is_json_table(const storage::Storage& storage, const std::string& path);

struct ReadTable {
  Table table;
  std::vector<std::uint64_t> ends;  // cumulative number of rows, per file
};
// Reads and parses the files. kData and kStorage errors have `shard` set.
Result<ReadTable> read_tables(const std::shared_ptr<const storage::Storage>& storage, const TablePlaces& places);
// Returns the object that a cell names. kData: the cell is empty, or is not the path of a file.
Result<std::string> file_of(const storage::Storage& storage, const TablePlace& place, std::string_view cell);

}  // namespace feedline::format
