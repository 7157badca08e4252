// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/arrow/arrow_entry.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "format/columnar/arrow/arrow_messages.h"
#include "format/columnar/arrow/arrow_table.h"
#include "format/columnar/arrow/saved_folder.h"
#include "format/columnar/table_source.h"
#include "format/columnar/tables_format.h"
#include "format/columnar/tables_inspection.h"
#include "format/sources/source_list.h"

namespace feedline::format {
namespace {

constexpr std::string_view kWhat = "Arrow file";

bool has_name(std::string_view path) {
  return has_end(path, ".arrow") || has_end(path, ".arrows") || has_end(path, ".feather") || has_end(path, ".ipc");
}

bool begins_as_arrow(const storage::Storage& storage, const std::string& path) {
  const auto reader = storage.open(path, storage::Access::kRead);
  if (!reader) return false;  // opening it reports the error
  std::array<std::byte, 8> front;
  const auto got = (*reader)->read_at(0, front);
  if (!got) return false;
  const auto bytes = std::span<const std::byte>(front).first(*got);
  return begins_as_arrow_file(bytes) || begins_as_arrow_stream(bytes);
}

// Does not send requests: remote sources are recognised only by name, or need format=.
Result<bool> is_arrow(const std::string& source, const storage::Storage& storage) {
  const std::string first = first_of_list(source, storage);
  if (storage.is_remote()) return has_name(first);
  const auto folder = storage.is_directory(first);
  if (!folder) return has_name(first);
  if (*folder) return is_saved_folder(first, storage) || first_data_file(first, storage, has_name);
  if (has_end(first, ".tar")) return false;
  return has_name(first) || begins_as_arrow(storage, first);
}

TableKind arrow_kind() {
  auto cache = new_block_cache();
  const auto open = [cache](const ShardFile& file, const storage::Reader& reader) {
    return ArrowTable::open(file, reader, cache);
  };
  return {"arrow", kWhat, open, "record batches", cache};
}

// Folders saved by `datasets` contain a list of their files.
Result<TableFiles> files_of_source(const std::string& source, const storage::Storage& storage) {
  if (storage.is_directory(source).value_or(false) && is_saved_folder(source, storage)) {
    FEEDLINE_TRY(auto files, files_of_saved(source, storage));
    return TableFiles{arrow_kind(), std::move(files)};
  }
  return table_files(source, storage, arrow_kind(), has_name, ".arrow");
}

Result<std::shared_ptr<const Format>> open_arrow(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto found, files_of_source(source, *options.storage));
  return TablesFormat::open(std::move(found.kind), source, found.files, options);
}

Result<Inspection> inspect_arrow(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto found, files_of_source(source, *options.storage));
  return inspect_columns(found.kind, source, found.files, options);
}

}  // namespace

const FormatEntry& arrow_entry() {
  static constexpr FormatEntry kEntry{"arrow", is_arrow, open_arrow, inspect_arrow, false, has_name};
  return kEntry;
}

}  // namespace feedline::format
