// SPDX-License-Identifier: Apache-2.0
#include "format/text_tables/table_source.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "format/compression/archive_kind.h"
#include "format/folder/folder_listing.h"
#include "format/sources/folder_files.h"
#include "format/sources/glob.h"
#include "format/sources/image_names.h"
#include "format/sources/source_list.h"
#include "format/sources/split_names.h"
#include "format/text_tables/parquet_rows.h"

namespace feedline::format {
namespace {

// The maximum size of a decompressed table, because small files can decompress to any size.
constexpr std::uint64_t kMostTableBytes = std::uint64_t{16} << 30U;
// The size of the parts in which larger files are read.
constexpr std::uint64_t kPartBytes = std::uint64_t{8} << 20U;
// The number of bytes at the start of a .json file that are searched for its first object.
constexpr std::size_t kJsonStart = std::size_t{1} << 20U;
constexpr std::string_view kLabel = "label";  // the field of class folders

// Excludes .json files, which may have any content in a folder.
bool is_table_name(std::string_view name) { return separator_of(name).has_value() && !has_json_name(name); }

std::string without_end(std::string_view folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
  return std::string(folder);
}

std::vector<std::string> metadata_in(const storage::Storage& storage, const std::string& folder) {
  std::vector<std::string> names;
  for (const std::string_view name : kMetadataNames)
    if (storage.stat(storage.below(folder, name))) names.emplace_back(name);
  return names;
}

// Returns the first of these subfolders that contains images, or nullopt if none does. Storage with flat names is
// listed only once.
Result<std::optional<std::string>> first_with_images(const storage::Storage& storage, const std::string& folder,
                                                     const std::vector<std::string>& names) {
  if (names.empty()) return std::nullopt;
  std::vector<std::string> paths;
  if (storage.has_flat_names()) {
    FEEDLINE_TRY(const auto tree, storage.list_below(folder, storage::Depth::kAll));
    for (const storage::StoredBelow& object : tree.objects) paths.push_back(object.path);
  }
  for (const std::string& name : names) {
    if (!storage.has_flat_names()) {
      FEEDLINE_TRY(const auto entries, storage.list(storage.below(folder, name)));
      for (const storage::Entry& entry : entries)
        if (!entry.is_directory) paths.push_back(name + "/" + entry.name);
    }
    const auto is_image = [&](const std::string& path) { return path.starts_with(name + "/") && is_image_name(path); };
    if (std::ranges::any_of(paths, is_image)) return name;
  }
  return std::nullopt;
}

// Returns the metadata file of a folder, or an error if there are several. `names` are the names of the metadata files
// in the folder.
Result<std::string> only_metadata(const std::vector<std::string>& names, const storage::Storage& storage,
                                  const std::string& folder) {
  if (names.size() > 1)
    return config_error("'" + folder + "' has both " + names[0] + " and " + names[1] + ": remove one");
  return storage.below(folder, names.front());
}

// Finds metadata in the subfolders of a folder. The names of subfolders are classes unless they are splits.
Result<std::optional<TableLocations>> metadata_below(const storage::Storage& storage, const std::string& folder) {
  const auto entries = storage.list(folder);
  std::vector<std::string> names, without;
  if (entries)
    for (const storage::Entry& entry : *entries) {
      if (!entry.is_directory || entry.name.starts_with('.')) continue;
      if (names.empty() && std::ssize(without) >= kFirstClasses) return std::optional<TableLocations>();
      const bool has_metadata = std::ranges::any_of(kMetadataNames, [&](std::string_view name) {
        return storage.stat(storage.below(folder, entry.name + "/" + std::string(name))).has_value();
      });
      (has_metadata ? names : without).push_back(entry.name);
    }
  if (names.empty()) return std::optional<TableLocations>();
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(name + "/metadata");
  const auto splits = splits_of(paths);
  if (splits.size() > 1 || (!splits.contains("") && !without.empty()))
    return config_error("'" + folder + "' has a separate dataset with metadata in each of its folders (" +
                        shown_names(names) + "): open one of them, or all as class folders with format=\"folder\"");
  FEEDLINE_TRY(const auto other, first_with_images(storage, folder, without));
  if (other)
    return config_error("'" + storage.below(folder, *other) + "' contains images but no metadata file, and '" +
                        storage.below(folder, names.front()) +
                        "' has one: add one, or open all as class folders with format=\"folder\"");
  TableLocations locations{{}, {}, true};
  for (const std::string& name : names) {
    const std::string inner = storage.below(folder, name);
    FEEDLINE_TRY(std::string path, only_metadata(metadata_in(storage, inner), storage, inner));
    locations.files.push_back({std::move(path), inner, splits.contains("") ? name : ""});
  }
  if (locations.files.size() == 1) locations.files.front().class_name.clear();
  return locations;
}

Result<std::optional<TableLocations>> find_in_folder(const storage::Storage& storage, const std::string& folder) {
  if (const auto metadata = metadata_in(storage, folder); !metadata.empty()) {
    FEEDLINE_TRY(std::string path, only_metadata(metadata, storage, folder));
    return TableLocations{{{std::move(path), folder, ""}}, {}, true};
  }
  FEEDLINE_TRY(auto below, metadata_below(storage, folder));
  if (below || storage.is_remote() || !first_data_file(folder, storage, is_table_name)) return below;
  const auto is_next_to_folders = [&] {  // a list of labels next to class folders
    const auto entries = storage.list(folder);
    return entries && std::ranges::any_of(*entries, [](const auto& entry) { return is_table_name(entry.name); }) &&
           std::ranges::any_of(*entries, [](const auto& entry) {
             return entry.is_directory ? !entry.name.starts_with('.') : is_image_name(entry.name);
           });
  };
  if (is_next_to_folders()) return std::optional<TableLocations>();
  TableLocations locations;
  FEEDLINE_TRY(const auto files, files_of_folder(folder, storage, is_table_name, ".jsonl"));
  for (const std::string& file : files) locations.files.push_back({file, folder, ""});
  FEEDLINE_TRY(locations.partitions, partitions_of(folder, files));
  return locations;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Passes the contents of a file to `take`, in parts unless the file is small.
Result<void> read_parts(const storage::Storage& storage, const std::string& path,
                        const StreamDecompression::Take& take) {
  FEEDLINE_TRY(const auto stat, storage.stat(path));
  memory::ByteBuffer buffer;
  if (stat.bytes <= kPartBytes) {
    FEEDLINE_TRY(const auto bytes, storage.read_all(path, buffer, stat.bytes));
    return take(bytes);
  }
  FEEDLINE_TRY(const auto reader, storage.open_version(path, storage::Access::kRead, stat));
  for (std::uint64_t offset = 0; offset < stat.bytes;) {
    const auto part = buffer.resize(static_cast<std::size_t>(std::min(kPartBytes, stat.bytes - offset)));
    FEEDLINE_TRY(const std::size_t got, reader->read_at(offset, part));
    if (got < part.size()) return storage_error("the file became shorter while it was read", 0);
    FEEDLINE_CHECK_OK(take(part));
    offset += got;
  }
  return {};
}

Result<Table> read_one(const std::shared_ptr<const storage::Storage>& storage, const std::string& path) {
  const auto separator = separator_of(path);
  if (!separator) return read_parquet_rows(storage, path);
  TableParser parser(*separator);
  const auto parse = [&parser](std::span<const std::byte> part) {
    return parser.feed({reinterpret_cast<const char*>(part.data()), part.size()});
  };
  std::optional<StreamDecompression> stream;
  bool is_first = true;
  const auto take = [&](std::span<const std::byte> part) -> Result<void> {
    if (std::exchange(is_first, false)) {
      const auto compression = compression_of(path);
      if (const std::string kind(archive_kind_of(part)); !compression && !kind.empty())
        return data_error("the file is " + kind +
                              " data, not a text table: decompress it, or if it is gzip, zstd or bzip2, append .gz, "
                              ".zst or .bz2 to its name",
                          "format");
      if (compression) {
        FEEDLINE_TRY(auto started, StreamDecompression::start(*compression, kMostTableBytes));
        stream.emplace(std::move(started));
      }
    }
    return stream ? stream->feed(part, parse) : parse(part);
  };
  FEEDLINE_CHECK_OK(read_parts(*storage, path, take));
  if (stream) FEEDLINE_CHECK_OK(stream->finish(parse));
  return parser.finish();
}

// Decompresses up to kJsonStart bytes of `packed`, the start of a compressed file.
std::string decompressed_start(Compression kind, std::string_view packed) {
  std::string plain;
  auto stream = StreamDecompression::start(kind, kMostTableBytes);
  if (!stream) return plain;
  const auto take = [&plain](std::span<const std::byte> part) -> Result<void> {
    plain.append(reinterpret_cast<const char*>(part.data()), part.size());
    if (plain.size() < kJsonStart) return {};
    return data_error("enough was decompressed", "format");  // ends feed()
  };
  // Errors are reported later, when the whole file is decompressed.
  static_cast<void>(stream->feed(std::as_bytes(std::span(packed)), take));
  plain.resize(std::min(plain.size(), kJsonStart));
  return plain;
}

// Checks that files of separated values have the same columns.
Result<void> check_columns(const Table& table, const Table& first, const TableLocations& locations, std::size_t file) {
  if (separator_of(locations.files[file].path).value_or('\0') == '\0') return {};
  const auto has_all = [](const Table& a, const Table& b) {
    return std::ranges::all_of(b.columns, [&](const TableColumn& column) { return a.find(column.name) != nullptr; });
  };
  if (has_all(table, first) && has_all(first, table)) return {};
  return data_error("has the columns " + table.names() + ", but '" + locations.files.front().path + "' has " +
                        first.names() + ": the files are not parts of one table",
                    "format");
}

}  // namespace

Result<std::optional<TableLocations>> find_tables(const storage::Storage& storage, const std::string& source,
                                                  bool is_asked_for) {
  if (storage.is_remote() ? source.ends_with('/') : storage.is_directory(source).value_or(false)) {
    if (storage.is_remote() && !is_asked_for) return std::optional<TableLocations>();
    return find_in_folder(storage, without_end(source));
  }
  const std::string first = first_of_list(source, storage);
  if (!is_table_name(first) && !(has_json_name(first) && (is_asked_for || is_json_table(storage, first))))
    return std::optional<TableLocations>();
  FEEDLINE_TRY(const auto files, shards_of(source, storage, "table"));
  TableLocations locations;
  for (const std::string& file : files) locations.files.push_back({file, folder_of(file), ""});
  FEEDLINE_TRY(locations.partitions, partitions_of(partition_root(source, false, files), files));
  return locations;
}

bool is_json_table(const storage::Storage& storage, const std::string& path) {
  if (storage.is_remote() || !has_json_name(path)) return false;
  const auto reader = storage.open(path, storage::Access::kRead);
  if (!reader) return false;  // opening the file reports the error
  std::string start(kJsonStart, '\0');
  start.resize((*reader)->read_at(0, std::as_writable_bytes(std::span(start))).value_or(0));
  const auto compression = compression_of(path);
  return begins_json_table(compression ? decompressed_start(*compression, start) : start);
}

Result<ReadTable> read_tables(const std::shared_ptr<const storage::Storage>& storage, const TableLocations& locations) {
  ReadTable all;
  const bool has_classes =
      std::ranges::any_of(locations.files, [](const auto& file) { return !file.class_name.empty(); });
  for (std::size_t i = 0; i < locations.files.size(); ++i) {
    const TableLocation& location = locations.files[i];
    const auto read = [&]() -> Result<Table> {
      FEEDLINE_TRY(Table table, read_one(storage, location.path));
      for (const Partition& partition : locations.partitions) {
        const auto& value = partition.values[i];
        const CellKind kind = partition.are_integers ? CellKind::kPlain : CellKind::kText;
        if (table.find(partition.name) == nullptr)
          table.add_constant(partition.name, value ? Cell{kind, *value} : Cell{});
      }
      if (has_classes && table.find(kLabel) == nullptr)
        table.add_constant(std::string(kLabel), {CellKind::kText, location.class_name});
      if (i > 0) FEEDLINE_CHECK_OK(check_columns(table, all.table, locations, i));
      return table;
    };
    auto table = read();
    if (!table) {
      if (table.error().where.shard.empty()) table.error().where.shard = location.path;
      return std::unexpected(std::move(table).error());
    }
    if (i == 0)
      all.table = std::move(*table);
    else
      all.table.append(std::move(*table));
    all.ends.push_back(all.table.rows());
  }
  all.table.seal();
  return all;
}

Result<std::string> file_of(const storage::Storage& storage, const TableLocation& location, std::string_view cell) {
  if (cell.contains("://"))
    return data_error(
        "'" + std::string(cell) + "' is a URL; the files of a table must be in the same storage as the table",
        "format");
  if (cell.contains('\0')) return data_error("the path contains a zero byte", "format");
  if (!cell.starts_with('/')) return storage.below(location.folder, cell);
  if (storage.is_remote())
    return data_error("'" + std::string(cell) + "' is a local path, but the table is remote", "format");
  return std::string(cell);
}

}  // namespace feedline::format
