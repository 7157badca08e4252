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

// Where a table is, and the files that it names.
struct TablePlace {
  std::string path;
  std::string folder;      // paths in cells are relative to it
  std::string class_name;  // if it is metadata in a class folder
};

// The files of one table, in order.
struct TablePlaces {
  std::vector<TablePlace> files;
  std::vector<Partition> partitions;  // of these files
  bool is_metadata = false;           // metadata.csv, .jsonl or .parquet in folders of images
};

// Tables given by names, by patterns or by a folder; metadata of a folder of images, in it or in each of its class
// folders; nullopt: the source has none. A remote folder is only listed if `is_asked_for`. kConfig: a folder has
// several metadata files, metadata of several splits, or metadata in only some class folders.
Result<std::optional<TablePlaces>> find_tables(const storage::Storage& storage, const std::string& source,
                                               bool is_asked_for);

// Does a .json file hold JSON lines or an array of objects? Of compressed files the name decides, and remote ones are
// not read.
bool is_json_table(const storage::Storage& storage, const std::string& path);

struct ReadTable {
  Table table;
  std::vector<std::uint64_t> ends;  // rows up to the end of each file
};
// Reads and parses them. kData and kStorage with `shard`.
Result<ReadTable> read_tables(const std::shared_ptr<const storage::Storage>& storage, const TablePlaces& places);
// The object that a cell names. kData: it is empty, or names another place than a file by its path.
Result<std::string> file_of(const storage::Storage& storage, const TablePlace& place, std::string_view cell);

}  // namespace feedline::format
