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

// Does a file's name end so, before "?" in a URL, in any case?
bool has_end(std::string_view path, std::string_view end);

// The files, and the kind of their tables with the columns of Hive partitions.
struct TableFiles {
  TableKind kind;
  std::vector<std::string> files;
};
// All files of the only split of a folder (folder_files.h), else those of a list. kConfig: see there.
Result<TableFiles> table_files(const std::string& source, const storage::Storage& storage, TableKind kind,
                               const IsDataFile& is_data, std::string_view end);

}  // namespace feedline::format
