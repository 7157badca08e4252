// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a source of tables: given by names, by a pattern, or by a folder.

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/folder_files.h"
#include "format/tables/tables_format.h"
#include "storage/storage.h"

namespace feedline::format {

// Returns whether a file's name, without a URL's query, has this extension, ignoring case.
bool has_end(std::string_view path, std::string_view end);

// The files, and the kind of their tables, including the columns of Hive partitions.
struct TableFiles {
  TableKind kind;
  std::vector<std::string> files;
};
// Returns all files of a folder's only split (folder_files.h), or those of a list. kConfig: see there.
Result<TableFiles> table_files(const std::string& source, const storage::Storage& storage, TableKind kind,
                               const IsDataFile& is_data, std::string_view end);

}  // namespace feedline::format
