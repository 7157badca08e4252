// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/table_source.h"

#include "format/columnar/partitioned_table.h"
#include "format/sources/folder_files.h"
#include "format/sources/partitions.h"
#include "format/sources/sample_name.h"
#include "format/sources/source_list.h"

namespace feedline::format {

bool has_end(std::string_view path, std::string_view end) {
  return to_lower(path.substr(0, path.find('?'))).ends_with(end);
}

Result<TableFiles> table_files(const std::string& source, const storage::Storage& storage, TableKind kind,
                               const IsDataFile& is_data, std::string_view end) {
  const bool is_folder = storage.is_directory(source).value_or(false);
  FEEDLINE_TRY(auto files,
               is_folder ? files_of_folder(source, storage, is_data, end) : shards_of(source, storage, kind.what));
  FEEDLINE_TRY(auto partitions, partitions_of(partition_root(source, is_folder, files), files));
  return TableFiles{with_partitions(std::move(kind), std::move(partitions), files), std::move(files)};
}

}  // namespace feedline::format
