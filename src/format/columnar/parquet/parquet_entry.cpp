// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/parquet_entry.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "format/columnar/parquet/parquet_table.h"
#include "format/columnar/table_source.h"
#include "format/columnar/tables_format.h"
#include "format/columnar/tables_inspection.h"
#include "format/sources/folder_files.h"
#include "format/sources/image_names.h"
#include "format/sources/source_list.h"

namespace feedline::format {
namespace {

constexpr std::string_view kWhat = "Parquet file", kEnd = ".parquet", kMetadataTable = "metadata.parquet";

bool has_magic(const storage::Storage& storage, const std::string& path) {
  const auto reader = storage.open(path, storage::Access::kRead);
  if (!reader) return false;  // opening the file reports the error
  std::array<std::byte, 4> front;
  const auto got = (*reader)->read_at(0, front);
  return got && *got == front.size() && std::memcmp(front.data(), "PAR1", front.size()) == 0;
}

bool has_name(std::string_view name) { return has_end(name, kEnd); }

// Returns whether a file only describes other files: an img2dataset report next to its tar file, or the
// metadata.parquet in an image folder.
bool is_of_other_files(const std::string& file, const storage::Storage& storage) {
  const std::size_t slash = file.rfind('/');
  const std::string stem = file.substr(0, file.size() - kEnd.size());
  if (storage.stat(stem + ".tar")) return true;
  if (file.substr(slash + 1) != kMetadataTable) return false;
  const auto entries = storage.list(slash == file.npos ? "." : file.substr(0, slash));
  return entries && std::ranges::none_of(*entries, [](const storage::Entry& entry) {
           return entry.name != kMetadataTable && has_name(entry.name);
         });
}

// Rejects reports that img2dataset writes with output_format="files", such as 00000.parquet next to the image folder
// 00000.
Result<void> check_report_of_images(const std::string& file, const storage::Storage& storage) {
  constexpr std::size_t kSome = 64;  // enough entries to find an image among the text and JSON files
  const std::string stem = file.substr(0, file.size() - kEnd.size());
  const std::string number = stem.substr(stem.rfind('/') + 1);
  if (!std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; })) return {};
  if (!storage.is_directory(stem).value_or(false)) return {};
  const auto entries = storage.list_some(stem, kSome);
  if (!entries) return {};
  const auto image = std::ranges::find_if(*entries, [](const auto& entry) { return is_image_name(entry.name); });
  if (image == entries->end()) return {};
  const bool has_captions =
      std::ranges::any_of(*entries, [](const auto& entry) { return entry.name.ends_with(".txt"); });
  return config_error("'" + file + "' is img2dataset's report on the images in '" + stem +
                      "', not a separate dataset: open the images with fields=(\"image={key}" +
                      image->name.substr(image->name.rfind('.')) + "\"," +
                      (has_captions ? " \"caption={key}.txt\"" : "") + "), or the reports with format=\"parquet\"");
}

// Does not send requests: remote files are recognised by name, or need format=.
Result<bool> is_parquet(const std::string& source, const storage::Storage& storage) {
  const std::string first = first_of_list(source, storage);
  if (storage.is_remote()) return has_name(first);
  const auto folder = storage.is_directory(first);
  if (!folder) return has_name(first);
  if (*folder) {
    const auto file = first_data_file(first, storage, has_name);
    if (file) FEEDLINE_CHECK_OK(check_report_of_images(*file, storage));
    return file && !is_of_other_files(*file, storage);
  }
  if (has_end(first, ".tar")) return false;
  return has_name(first) || has_magic(storage, first);
}

TableKind parquet_kind() {
  auto cache = new_block_cache();
  const auto open = [cache](const ShardFile& file, const storage::Reader& reader) {
    return ParquetTable::open(file, reader, cache);
  };
  return {"parquet", kWhat, open, "row groups", cache};
}

Result<std::shared_ptr<const Format>> open_parquet(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto found, table_files(source, *options.storage, parquet_kind(), has_name, kEnd));
  return TablesFormat::open(std::move(found.kind), source, found.files, options);
}

Result<Inspection> inspect_parquet(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto found, table_files(source, *options.storage, parquet_kind(), has_name, kEnd));
  return inspect_columns(found.kind, source, found.files, options);
}

}  // namespace

const FormatEntry& parquet_entry() {
  static constexpr FormatEntry kEntry{"parquet", is_parquet, open_parquet, inspect_parquet, false, has_name};
  return kEntry;
}

}  // namespace feedline::format
