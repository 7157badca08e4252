// SPDX-License-Identifier: Apache-2.0
#include "format/registry/folder_entry.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "format/columnar/arrow/arrow_entry.h"
#include "format/columnar/parquet/parquet_entry.h"
#include "format/folder/folder_format.h"
#include "format/folder/folder_listing.h"
#include "format/folder/pattern_format.h"
#include "format/lmdb/lmdb_entry.h"
#include "format/plugin/plugin_entry.h"
#include "format/row_columns/mds/mds_entry.h"
#include "format/sources/folder_files.h"
#include "format/sources/image_names.h"
#include "format/sources/packed_folder.h"
#include "format/sources/sample_name.h"
#include "format/tar/tar_entry.h"
#include "format/tar/tar_format.h"
#include "format/tar/tar_inspection.h"
#include "format/text_tables/table_entry.h"
#include "format/text_tables/table_source.h"
#include "format/tfrecord/tfrecord_entry.h"

namespace feedline::format {
namespace {

Result<bool> is_folder(const std::string& source, const storage::Storage& storage) {
  const auto folder = storage.is_directory(source);
  if (!folder || !*folder) return false;
  for (const FormatEntry* entry : {&tfrecord_entry(), &tar_entry()})  // folders of shards
    if (!storage.is_remote() && entry->sniff(source, storage).value_or(false)) return false;
  return true;
}

Result<void> check_folder(const std::string& source, const storage::Storage& storage) {
  FEEDLINE_TRY(const bool folder, storage.is_directory(source));
  if (folder) return {};
  return config_error("'" + source + "' is a file; format \"folder\" reads a folder of class folders");
}

Result<std::shared_ptr<const Format>> open_images(const std::string& source, const OpenOptions& options) {
  if (!options.fields.empty()) return PatternFormat::open(source, options);
  auto classes = FolderFormat::open(source, options);
  if (classes || classes.error().code != ErrorCode::kConfig) return classes;
  // a folder of audio files or videos without class folders
  FEEDLINE_TRY(const FolderListing listing, list_folder(*options.storage, without_end_slashes(source)));
  std::string extension, name;
  for (const auto& [stray, count] : listing.stray_extensions) {
    const bool is_audio = is_audio_name(stray);
    if (!is_audio && !is_video_name(stray)) continue;
    extension = extension.empty() ? stray : "*";
    name = is_audio ? "audio" : "video";
  }
  if (!listing.classes.empty() || extension.empty()) return classes;
  if (extension == "*")
    return config_error("the folder contains " + std::string(name == "audio" ? "audio files" : "videos") +
                        " with several extensions; open them with fields=\"" + name + "={key}:" + name +
                        "\", which reads all files, or with one of them, such as fields=\"" + name + "={key}" +
                        (name == "audio" ? ".wav" : ".mp4") + "\"");
  OpenOptions pattern = options;
  pattern.fields = {name + "={key}" + extension};
  return PatternFormat::open(source, pattern);
}

// Checks whether a remote folder without images has packed shards. Local folders are checked earlier by is_folder().
// Returns nullopt if the folder has no packed shards or cannot be read, so that the error about images is reported.
Result<std::optional<PackedFolder>> packed_shards(const std::string& source, const OpenOptions& options) {
  if (!options.storage->is_remote() || !options.format.empty()) return std::nullopt;
  auto packed = packed_folder(source, *options.storage);
  if (!packed && packed.error().code == ErrorCode::kStorage) return std::nullopt;
  return packed;
}

// Returns whether a remote folder contains a table that describes its images. `error` is the error from opening the
// folder without a table.
Result<bool> describes_images(const std::string& source, const Error& error, const OpenOptions& options) {
  const auto is_pattern = [](const std::string& spec) { return spec.contains("{key}"); };
  if (!options.storage->is_remote() || !options.format.empty() || error.code == ErrorCode::kStorage) return false;
  if (std::ranges::any_of(options.fields, is_pattern)) return false;
  FEEDLINE_TRY(const auto tables, find_tables(*options.storage, without_end_slashes(source) + "/", true));
  return tables.has_value();
}

// Returns the format of the shards in a remote folder without images, or nullptr if the folder has no shards. Local
// folders of shards are recognised earlier; probing a remote folder for each format would need more requests.
const FormatEntry* entry_of_shards(const std::string& source, const Error& error, const OpenOptions& options) {
  if (!options.storage->is_remote() || !options.format.empty() || error.code != ErrorCode::kConfig) return nullptr;
  const std::array all{&plugin_entry(), &tar_entry(), &tfrecord_entry(), &arrow_entry(), &parquet_entry()};
  const auto entry_of_name = [&](std::string_view name) {
    const auto found = std::ranges::find_if(all, [&](const FormatEntry* entry) { return entry->names_shard(name); });
    return found == all.end() ? nullptr : *found;
  };
  const auto shard =
      first_data_file(source, *options.storage, [&](std::string_view name) { return entry_of_name(name) != nullptr; });
  return shard ? entry_of_name(shard->substr(shard->rfind('/') + 1)) : nullptr;
}

// Returns the format of packed shards that are not tars.
const FormatEntry& entry_of_packed(const PackedFolder& packed) {
  for (const FormatEntry* entry : {&tfrecord_entry(), &parquet_entry()})
    if (entry->names_shard(packed.shards.front())) return *entry;
  return packed.has(".lmdb") ? lmdb_entry() : mds_entry();
}

Result<std::shared_ptr<const Format>> open_folder(const std::string& source, const OpenOptions& options) {
  FEEDLINE_CHECK_OK(check_folder(source, *options.storage));
  auto images = open_images(source, options);
  if (images) return images;
  FEEDLINE_TRY(const auto packed, packed_shards(source, options));
  if (!packed) {
    FEEDLINE_TRY(const bool has_table, describes_images(source, images.error(), options));
    if (has_table) return table_entry().open(without_end_slashes(source) + "/", options);
    const FormatEntry* const shards = entry_of_shards(source, images.error(), options);
    return shards != nullptr ? shards->open(source, options) : std::move(images);
  }
  if (packed->has(".tar")) return TarFormat::open(source, packed->shards, options);
  return entry_of_packed(*packed).open(source, options);
}

Result<Inspection> inspect_folder(const std::string& source, const OpenOptions& options) {
  FEEDLINE_CHECK_OK(check_folder(source, *options.storage));
  FEEDLINE_TRY(const auto packed, packed_shards(source, options));
  if (packed && packed->has(".tar")) return inspect_tar(source, packed->shards, options);
  if (packed) return entry_of_packed(*packed).inspect(source, options);
  FEEDLINE_TRY(const bool has_table, describes_images(source, {}, options));
  if (has_table) return table_entry().inspect(without_end_slashes(source) + "/", options);
  auto images =
      options.fields.empty() ? FolderFormat::inspect(source, options) : PatternFormat::inspect(source, options);
  if (images && images->samples > 0) return images;
  const Error error = images ? config_error("no images").error() : images.error();
  const FormatEntry* const shards = entry_of_shards(source, error, options);
  return shards != nullptr ? shards->inspect(source, options) : std::move(images);
}

}  // namespace

const FormatEntry& folder_entry() {
  static constexpr FormatEntry kEntry{"folder", is_folder, open_folder, inspect_folder};
  return kEntry;
}

}  // namespace feedline::format
