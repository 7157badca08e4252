// SPDX-License-Identifier: Apache-2.0
#include "format/table/table_source.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace feedline::format {
namespace {

// Of a compressed table, which is in memory as a whole: what a small file may become.
constexpr std::uint64_t kMostTableBytes = std::uint64_t{16} << 30U;
constexpr std::array<std::string_view, 2> kMetadata{"metadata.csv", "metadata.jsonl"};
// What Hugging Face's datasets take for names of splits.
constexpr std::array<std::string_view, 10> kSplits{"train", "training", "test", "testing", "validation",
                                                   "valid", "val",      "dev",  "eval",    "evaluation"};

std::string without_end(std::string_view folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
  return std::string(folder);
}

// The table in a folder; empty: there is none.
Result<std::string> metadata_in(const storage::Storage& storage, const std::string& folder) {
  std::string found;
  for (const std::string_view name : kMetadata) {
    std::string path = storage.below(folder, name);
    if (!storage.stat(path)) continue;
    if (!found.empty()) return config_error("'" + folder + "' holds metadata.csv and metadata.jsonl: remove one");
    found = std::move(path);
  }
  return found;
}

Result<std::optional<TablePlace>> find_metadata(const storage::Storage& storage, const std::string& folder) {
  FEEDLINE_TRY(const std::string path, metadata_in(storage, folder));
  if (!path.empty()) return TablePlace{path, folder, true};
  std::string splits;
  for (const std::string_view split : kSplits) {
    FEEDLINE_TRY(const std::string inside, metadata_in(storage, storage.below(folder, split)));
    if (!inside.empty()) splits.append(splits.empty() ? "" : ", ").append(split);
  }
  if (splits.empty()) return std::optional<TablePlace>();
  return config_error("'" + folder + "' has a dataset with metadata in each of its folders (" + splits +
                      "): open one of them, or with format=\"folder\" all of them as classes");
}

}  // namespace

Result<std::optional<TablePlace>> find_table(const storage::Storage& storage, const std::string& source,
                                             bool is_asked_for) {
  if (storage.is_remote() ? source.ends_with('/') : storage.is_directory(source).value_or(false)) {
    if (storage.is_remote() && !is_asked_for) return std::optional<TablePlace>();
    return find_metadata(storage, without_end(source));
  }
  if (!separator_of(source)) return std::optional<TablePlace>();
  const std::size_t slash = source.rfind('/');
  const std::string folder = slash == source.npos ? "." : slash == 0 ? "/" : source.substr(0, slash);
  return TablePlace{source, folder, false};
}

Result<Table> read_table(const storage::Storage& storage, const TablePlace& place) {
  const auto read = [&]() -> Result<Table> {
    FEEDLINE_TRY(const auto stat, storage.stat(place.path));
    memory::ByteBuffer buffer;
    FEEDLINE_TRY(std::span<const std::byte> bytes, storage.read_all(place.path, buffer, stat.bytes));
    memory::ByteBuffer plain;
    if (const auto compression = compression_of(place.path)) {
      FEEDLINE_TRY(bytes, decompress(*compression, bytes, plain, kMostTableBytes));
    }
    return parse_table({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                       separator_of(place.path).value_or(','));
  };
  auto table = read();
  if (!table && table.error().where.shard.empty()) table.error().where.shard = place.path;
  return table;
}

Result<std::string> file_of(const storage::Storage& storage, const TablePlace& place, std::string_view cell) {
  if (cell.contains("://"))
    return data_error("'" + std::string(cell) + "' is a URL; the files of a table are where the table is", "format");
  if (cell.contains('\0')) return data_error("a path with a byte of zero", "format");
  if (!cell.starts_with('/')) return storage.below(place.folder, cell);
  if (storage.is_remote())
    return data_error("'" + std::string(cell) + "' is a path of a machine, and the table is behind a network",
                      "format");
  return std::string(cell);
}

}  // namespace feedline::format
