// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/coco_source.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cache/persisted_tables.h"
#include "format/annotations/coco/coco_scan.h"
#include "format/annotations/image_folder.h"
#include "format/folder/listed_folders.h"
#include "format/sources/source_list.h"
#include "text/json_reader.h"

namespace feedline::format {
namespace {

cache::PersistedTables tables_of(const OpenOptions& options) {
  return {{kCocoTable, cache::kIndexSuffix, true}, options.index_directory, options.notes};
}

Result<CocoTable> read_table(const std::string& json, const storage::Reader& reader,
                             const storage::ObjectStat& version) {
  text::JsonReader text([&](std::uint64_t offset, std::span<std::byte> block) { return reader.read_at(offset, block); },
                        {.unique_keys = true});
  auto parts = scan_coco(text);
  if (!parts) {
    parts.error().where.shard = json;
    return std::unexpected(std::move(parts).error());
  }
  FEEDLINE_TRY(const storage::ObjectStat now, reader.stat());
  if (now != version) return storage_error("'" + json + "' changed while it was read", 0);
  return CocoTable::build(*parts, version);
}

// Returns the part after the first underscore: "train2017" for "instances_train2017.json".
std::string split_of(const std::string& json) {
  const std::string stem(stem_of(last_of(json)));
  const std::size_t end = stem.find('_');
  return end == stem.npos ? stem : stem.substr(end + 1);
}

std::vector<std::string> usual_folders(const std::string& json, const storage::Storage& storage) {
  const std::string split = split_of(json), here = folder_of(json);
  const std::string above = here == "." ? ".." : folder_of(here);
  const auto below = [&](const std::string& folder, const std::string& path) { return storage.below(folder, path); };
  return {below(above, split),
          below(here, split),
          below(below(above, "images"), split),
          below(below(here, "images"), split),
          below(above, "images"),
          below(here, "images"),
          here,
          above};
}

}  // namespace

Result<bool> check_coco_options(const OpenOptions& options) {
  if (!options.annotations.split.empty())
    return config_error("split: not supported for COCO, where each split is a JSON file; open that file");
  if (options.missing != Missing::kError)
    return config_error("missing: not supported for COCO; an image without annotations has no objects");
  const std::string& crowd = options.annotations.crowd;
  if (crowd.empty() || crowd == "skip") return true;
  if (crowd == "keep") return false;
  return config_error("crowd must be \"skip\" or \"keep\", not '" + crowd + "'");
}

Result<CocoTable> read_coco_table(const std::string& json, const OpenOptions& options) {
  FEEDLINE_TRY(const auto reader, options.storage->open(json, storage::Access::kRead));
  FEEDLINE_TRY(const storage::ObjectStat version, reader->version());
  return read_table(json, *reader, version);
}

Result<CocoTable> open_coco_table(const std::string& json, const OpenOptions& options) {
  FEEDLINE_TRY(const auto reader, options.storage->open(json, storage::Access::kRead));
  FEEDLINE_TRY(const storage::ObjectStat version, reader->version());
  const cache::PersistedTables tables = tables_of(options);
  std::optional<CocoTable> table;
  tables.map(*options.storage, json, [&](cache::PersistedTables::Bytes bytes) {
    table = CocoTable::parse(bytes.file, std::move(bytes.pin), version);
    return table.has_value();
  });
  if (table) return std::move(*table);
  FEEDLINE_TRY(CocoTable made, read_table(json, *reader, version));
  if (version.bytes >= kWorthATable || !options.index_directory.empty())
    FEEDLINE_CHECK_OK(tables.save(*options.storage, json, made.file_bytes()));
  return made;
}

Result<std::string> find_images(const std::string& json, const CocoTable& table, const OpenOptions& options) {
  if (!options.annotations.images.empty()) {
    FEEDLINE_TRY(const LocatedSource images, locate(options.annotations.images));
    if (images.storage->is_remote() != options.storage->is_remote())
      return config_error("images: '" + options.annotations.images +
                          "' is in a different storage from the annotations");
    FEEDLINE_TRY(const bool is_folder, options.storage->is_directory(images.source));
    if (!is_folder) return config_error("images: '" + options.annotations.images + "' is a file, not a folder");
    return without_end_slashes(images.source);
  }
  const std::string first(table.file_name(0));
  std::string looked;
  for (const std::string& folder : usual_folders(json, *options.storage)) {
    if (options.storage->stat(options.storage->below(folder, first))) return folder;
    looked += (looked.empty() ? "'" : ", '") + folder + "'";
  }
  return config_error("the image '" + first +
                      "' is not in any of the usual folders; set images= to its folder. Searched: " + looked);
}

}  // namespace feedline::format
