// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "feedline/error.h"
#include "format/table/table.h"
#include "storage/storage.h"

namespace feedline::format {

// Where a table is, and the files that it names.
struct TablePlace {
  std::string path;
  std::string folder;        // that cells with paths start from
  bool is_metadata = false;  // of a folder of images: metadata.csv or metadata.jsonl in it
};

// A table by its name, or the one in a folder; nullopt: the source is none. A folder behind a network is not looked at
// unless `is_asked_for`. kConfig: the folder has two, or has none and folders with some in it, as a dataset with
// splits.
Result<std::optional<TablePlace>> find_table(const storage::Storage& storage, const std::string& source,
                                             bool is_asked_for);
// Reads and parses it. kData and kStorage with `shard`.
Result<Table> read_table(const storage::Storage& storage, const TablePlace& place);
// The object that a cell names. kData: it is empty, or names another place than a file by its path.
Result<std::string> file_of(const storage::Storage& storage, const TablePlace& place, std::string_view cell);

}  // namespace feedline::format
