// SPDX-License-Identifier: Apache-2.0
#include "format/parquet/parquet_entry.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/parquet/parquet_table.h"
#include "format/tables/table_source.h"
#include "format/tables/tables_format.h"
#include "format/tables/tables_inspection.h"

namespace feedline::format {
namespace {

constexpr std::string_view kWhat = "Parquet file", kEnd = ".parquet";

bool has_magic(const storage::Storage& storage, const std::string& path) {
  const auto reader = storage.open(path, storage::Access::kRead);
  if (!reader) return false;  // who opens it says why
  std::array<std::byte, 4> front;
  const auto got = (*reader)->read_at(0, front);
  return got && *got == front.size() && std::memcmp(front.data(), "PAR1", front.size()) == 0;
}

bool has_tables(const storage::Storage& storage, const std::string& folder) {
  const auto entries = storage.list(folder);
  return entries && std::ranges::any_of(*entries, [](const storage::Entry& entry) {
           return !entry.is_directory && has_end(entry.name, kEnd);
         });
}

// The files lie in it, or in its folder "data".
std::string folder_of_tables(const storage::Storage& storage, std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  if (has_tables(storage, folder)) return folder;
  const std::string data = storage.below(folder, "data");
  if (const auto is_folder = storage.is_directory(data); is_folder && *is_folder && has_tables(storage, data))
    return data;
  return {};
}

// Asks no server: there, a name says it, or format=.
Result<bool> is_parquet(const std::string& source, const storage::Storage& storage) {
  const std::string first = first_of_list(source, storage);
  if (storage.is_remote() || is_pattern(first, storage)) return has_end(first, kEnd);
  const auto folder = storage.is_directory(first);
  if (!folder) return has_end(first, kEnd);
  if (*folder) return !folder_of_tables(storage, first).empty();
  if (has_end(first, ".tar")) return false;
  return has_end(first, kEnd) || has_magic(storage, first);
}

Result<std::vector<std::string>> files_of_source(const std::string& source, const storage::Storage& storage) {
  const auto is_folder = storage.is_directory(source);
  if (!is_folder || !*is_folder) return files_of_list(source, storage, kWhat);
  const std::string folder = folder_of_tables(storage, source);
  return files_of_folder(folder.empty() ? source : folder, storage, kEnd);
}

TableKind parquet_kind() {
  auto cache = std::make_shared<BlockCache>(kBlockCacheBytes);
  const auto open = [cache](const ShardFile& file, const storage::Reader& reader) {
    return ParquetTable::open(file, reader, cache);
  };
  return {"parquet", kWhat, open, [cache] { return cache->summary(); }};
}

Result<std::shared_ptr<const Format>> open_parquet(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto files, files_of_source(source, *options.storage));
  return TablesFormat::open(parquet_kind(), source, files, options);
}

Result<Inspection> inspect_parquet(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto files, files_of_source(source, *options.storage));
  return inspect_columns(parquet_kind(), source, files, options);
}

}  // namespace

const FormatEntry& parquet_entry() {
  static constexpr FormatEntry kEntry{"parquet", is_parquet, open_parquet, inspect_parquet};
  return kEntry;
}

}  // namespace feedline::format
