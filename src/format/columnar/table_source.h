// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the table files of a source, which may be file names, a pattern, or a folder.

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/tables_format.h"
#include "format/sources/folder_files.h"
#include "storage/storage.h"

namespace feedline::format {

// Returns whether a file has this extension. Ignores case and the query of a URL.
bool has_end(std::string_view path, std::string_view end);

// The files, and the kind of their tables, which includes the Hive partition columns.
struct TableFiles {
  TableKind kind;
  std::vector<std::string> files;
};
// Returns the files in a list, or in a folder that has only one split (folder_files.h). Fails with kConfig in the same
// cases as files_of_folder().
Result<TableFiles> table_files(const std::string& source, const storage::Storage& storage, TableKind kind,
                               const IsDataFile& is_data, std::string_view end);

}  // namespace feedline::format
