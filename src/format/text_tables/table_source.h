// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/sources/partitions.h"
#include "format/text_tables/table.h"
#include "storage/storage.h"

namespace feedline::format {

// The location of a table and of the files that it names.
struct TableLocation {
  std::string path;
  std::string folder;      // base of relative paths in cells
  std::string class_name;  // class name, if the table is metadata in a class folder
};

// The files that form one table, in order.
struct TableLocations {
  std::vector<TableLocation> files;
  std::vector<Partition> partitions;  // partitions of these files
  bool is_metadata = false;           // metadata.csv, .jsonl or .parquet in folders of images
};

// Finds the tables in a source, which may be a folder, or a list of names and patterns. For a folder of images, finds
// the metadata in the folder itself or in each class folder. Returns nullopt if there are no tables. Lists remote
// folders only if `is_asked_for` is true. Fails with kConfig if a folder has several metadata files, metadata of
// several splits, or metadata in only some class folders.
Result<std::optional<TableLocations>> find_tables(const storage::Storage& storage, const std::string& source,
                                                  bool is_asked_for);

// Returns whether a .json file contains JSON lines or an array of objects. Compressed and remote files are recognised
// by their names only.
bool is_json_table(const storage::Storage& storage, const std::string& path);

struct ReadTable {
  Table table;
  std::vector<std::uint64_t> ends;  // cumulative number of rows, per file
};
// Reads and parses the files. kData and kStorage errors name the file as their shard.
Result<ReadTable> read_tables(const std::shared_ptr<const storage::Storage>& storage, const TableLocations& locations);
// Returns the object that a cell names. Fails with kData if the cell is empty or is not the path of a file.
Result<std::string> file_of(const storage::Storage& storage, const TableLocation& location, std::string_view cell);

}  // namespace feedline::format
