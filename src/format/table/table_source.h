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
  std::string folder;      // that cells with paths start from
  std::string class_name;  // of metadata in a class folder
};

// The files of one table, in order.
struct TablePlaces {
  std::vector<TablePlace> files;
  std::vector<Partition> partitions;  // of these files
  bool is_metadata = false;           // of folders of images: metadata.csv, .jsonl or .parquet in them
};

// Tables by their names, by patterns or in a folder; metadata of a folder of images, in it or in each of its class
// folders; nullopt: the source has none. A remote folder is only looked at if `is_asked_for`. kConfig: a folder has
// several metadata files, or several splits of them, or metadata in some class folders only.
Result<std::optional<TablePlaces>> find_tables(const storage::Storage& storage, const std::string& source,
                                               bool is_asked_for);

struct ReadTable {
  Table table;
  std::vector<std::uint64_t> ends;  // rows up to and with each file
};
// Reads and parses them. kData and kStorage with `shard`.
Result<ReadTable> read_tables(const std::shared_ptr<const storage::Storage>& storage, const TablePlaces& places);
// The object that a cell names. kData: it is empty, or names another place than a file by its path.
Result<std::string> file_of(const storage::Storage& storage, const TablePlace& place, std::string_view cell);

}  // namespace feedline::format
