// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/lmdb_entry.h"

#include <array>
#include <string_view>
#include <vector>

#include "format/lmdb/lmdb_format.h"
#include "format/lmdb/lmdb_inspection.h"
#include "format/sources/source_list.h"

namespace feedline::format {
namespace {

// Checks the extension; ignores the query in a URL.
bool has_name_of_lmdb(std::string_view path) {
  path = path.substr(0, path.find('?'));
  while (path.ends_with('/')) path.remove_suffix(1);
  return path.ends_with(".lmdb") || path.ends_with(".mdb");
}

// Returns the databases in a source, in order. Each database is a file, or a folder that contains data.mdb.
Result<std::vector<std::string>> databases_of(const std::string& source, const storage::Storage& storage) {
  return names_of_list(source, storage, "LMDB database", true);
}

// Does not send requests: remote databases are recognised by name, or need format=.
Result<bool> is_lmdb_source(const std::string& source, const storage::Storage& storage) {
  const std::string first = first_of_list(source, storage);
  if (storage.is_remote()) return has_name_of_lmdb(first);
  const auto path = locate_lmdb(first, storage);
  if (!path || !storage.stat(*path)) return false;
  const auto reader = storage.open(*path, storage::Access::kRead);
  if (!reader) return has_name_of_lmdb(*path);
  std::array<std::byte, kMetaBytes> head;
  const auto got = (*reader)->read_at(0, head);
  return has_name_of_lmdb(*path) || (got && is_lmdb(std::span(head).first(*got)));
}

Result<std::shared_ptr<const Format>> open_lmdb(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto names, databases_of(source, *options.storage));
  return LmdbFormat::open(source, names, options);
}

Result<Inspection> inspect_databases(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto names, databases_of(source, *options.storage));
  return inspect_lmdb(source, names, options);
}

}  // namespace

const FormatEntry& lmdb_entry() {
  static constexpr FormatEntry kEntry{"lmdb", is_lmdb_source, open_lmdb, inspect_databases};
  return kEntry;
}

}  // namespace feedline::format
