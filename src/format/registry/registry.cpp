// SPDX-License-Identifier: Apache-2.0
#include "format/format_entry.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "decode/image_formats.h"
#include "format/annotations/coco/coco_entry.h"
#include "format/annotations/voc/voc_entry.h"
#include "format/annotations/yolo/yolo_entry.h"
#include "format/columnar/arrow/arrow_entry.h"
#include "format/columnar/parquet/parquet_entry.h"
#include "format/compression/archive_kind.h"
#include "format/index/memoized_storage.h"
#include "format/lmdb/lmdb_entry.h"
#include "format/numpy_files/numpy_entry.h"
#include "format/pixels/pixel_entry.h"
#include "format/plugin/plugin_entry.h"
#include "format/plugin/plugin_formats.h"
#include "format/registry/folder_entry.h"
#include "format/registry/format_names.h"
#include "format/row_columns/litdata/litdata_entry.h"
#include "format/row_columns/mds/mds_entry.h"
#include "format/sources/image_names.h"
#include "format/sources/packed_folder.h"
#include "format/sources/sample_name.h"
#include "format/sources/source_list.h"
#include "format/tar/index_store.h"
#include "format/tar/tar_entry.h"
#include "format/text_tables/table_entry.h"
#include "format/tfrecord/tfrecord_entry.h"
#include "format/tokens/datatrove_entry.h"
#include "format/tokens/megatron_entry.h"
#include "text/utf8.h"

namespace feedline::format {
namespace {

// All entries in the order of detection.
std::span<const FormatEntry* const> entries() {
  // Folders with an index, tables, a database, annotations, or a table next to images are detected before folders of
  // images. Tar is last, because sources that cannot be queried are assumed to be lists of tar files.
  static const FormatEntry* const kAll[] = {&mds_entry(),      &litdata_entry(),   &lmdb_entry(),     &arrow_entry(),
                                            &parquet_entry(),  &coco_entry(),      &voc_entry(),      &yolo_entry(),
                                            &table_entry(),    &folder_entry(),    &pixel_entry(),    &numpy_entry(),
                                            &megatron_entry(), &datatrove_entry(), &tfrecord_entry(), &tar_entry()};
  return kAll;
}

// "folder, pixels and tar"
std::string names_of_all() {
  std::vector<std::string_view> all = plugin_format_names();
  for (const FormatEntry* entry : entries()) all.push_back(entry->name);
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i)
    text.append(i == 0 ? "" : i + 1 == all.size() ? " and " : ", ").append(all[i]);
  return text;
}

const FormatEntry* entry_named(std::string_view name) {
  const auto named = std::ranges::find(entries(), name, &FormatEntry::name);
  if (named != entries().end()) return *named;
  return plugin_format(name) == nullptr ? nullptr : &plugin_entry();
}

// Returns whether a remote shard has a stored index. Shards with a stored index are recognised without a request.
bool is_indexed_shard(const std::string& source, const OpenOptions& options) {
  return options.storage->holds_versions() && options.listing_age.count() > 0 &&
         IndexStore(options.index_directory).load_unchecked(*options.storage, source);
}

// Returns whether fields= has patterns for LMDB keys or for files in a folder.
bool are_patterns(const OpenOptions& options) {
  return std::ranges::any_of(options.fields, [](const std::string& spec) { return spec.contains("{key}"); });
}

// Returns the first image if the source is an image, or a pattern or list of images. Images are not supported as
// sources.
std::optional<std::string> image_in(const std::string& source, const storage::Storage& storage) {
  if (storage.is_remote() || !is_any_image_name(source)) return {};
  std::string first = first_of_list(source, storage);
  if (!storage.stat(first) || storage.is_directory(first).value_or(true)) return {};
  return first;
}

// Returns the archive type of a local file, such as "xz", or an empty string if the file is not an archive.
std::string archive_kind_in(const std::string& source, const storage::Storage& storage) {
  const std::string first = first_of_list(source, storage);
  if (storage.is_remote() || storage.is_directory(first).value_or(true)) return {};
  const auto reader = storage.open(first, storage::Access::kRead);
  if (!reader) return {};
  std::array<std::byte, kArchiveHead> start{};
  const std::size_t got = (*reader)->read_at(0, start).value_or(0);
  return std::string(archive_kind_of(std::span(start).first(got)));
}

// Returns whether files with this extension are archives or compressed files that Feedline reads.
bool is_archive_by_name(const std::string& path) {
  const std::string name = to_lower(path);
  return std::ranges::any_of(std::array{".npz", ".gz", ".tgz", ".zst", ".bz2"},
                             [&](const char* end) { return name.ends_with(end); });
}

// If the file is an archive, adds this fact to a data error.
Error with_archive_kind(Error error, const std::string& source, const OpenOptions& options) {
  const std::string& path = error.where.shard.empty() ? source : error.where.shard;
  if (error.code != ErrorCode::kData || is_archive_by_name(path)) return error;
  const std::string kind = archive_kind_in(path, *options.storage);
  if (!kind.empty() && !error.what.contains(kind)) error.what += " (the file is " + kind + " data: unpack it)";
  return error;
}

Result<const FormatEntry*> entry_of(const std::string& source, const OpenOptions& options) {
  if (!options.format.empty()) {
    const FormatEntry* const named = entry_named(options.format);
    if (named == nullptr)
      return config_error("unknown format '" + options.format + "'; the formats are " + names_of_all());
    if (!source.empty()) return named;
  }
  if (source.empty()) return config_error("the source is empty; name a folder or files of a supported format");
  const MemoizedStorage storage(*options.storage);
  FEEDLINE_TRY(const bool is_of_plugin, plugin_entry().sniff(source, storage));
  if (is_of_plugin) return &plugin_entry();
  if (storage.is_remote() && is_list(source)) {  // do not request an object with the list as its name
    for (const FormatEntry* entry : {&lmdb_entry(), &numpy_entry(), &megatron_entry(), &datatrove_entry(),
                                     &tfrecord_entry(), &arrow_entry(), &parquet_entry()}) {
      FEEDLINE_TRY(const bool is_one, entry->sniff(source, storage));
      if (is_one) return entry;
    }
    return &tar_entry();
  }
  if (is_indexed_shard(source, options)) return &tar_entry();
  if (are_patterns(options)) {  // do not list the folder, which may have millions of files
    FEEDLINE_TRY(const bool is_database, lmdb_entry().sniff(source, storage));
    if (is_database) return &lmdb_entry();
    if (storage.is_directory(source).value_or(false)) return &folder_entry();
  }
  if (const auto image = image_in(source, storage))
    return config_error("'" + *image +
                        "' is an image, not a dataset: open the folder that contains the class folders or, for images "
                        "without classes, their folder with fields=\"{key}" +
                        image->substr(image->rfind('.')) + "\"");
  for (const FormatEntry* entry : entries()) {
    FEEDLINE_TRY(const bool is_one, entry->sniff(source, storage));
    if (is_one) return entry;
  }
  if (const std::string kind = archive_kind_in(source, storage); !kind.empty())
    return config_error(
        "'" + source + "' is " + kind +
        " data, which Feedline does not read: unpack it. Supported compressed files are tars (.tar.gz, .tgz), "
        "TFRecord files, and the tables .csv, .tsv, .jsonl and .json with the suffix .gz, .zst or .bz2");
  return config_error("'" + source + "' is neither a folder nor a file of a supported format: " + names_of_all());
}

std::unexpected<Error> located(Error error, const std::string& source) {
  error.where.dataset = source;
  return std::unexpected(std::move(error));
}

// Checks that options of some formats are set only for these.
Result<void> check_options(const FormatEntry& entry, const OpenOptions& options) {
  if (options.documents && !entry.has_documents)
    return config_error("documents= is for Megatron's token files (\"megatron\"), but the format of the source is \"" +
                        std::string(entry.name) + "\"");
  const AnnotationOptions& given = options.annotations;
  if (entry.has_annotations) return {};
  const char* const name = !given.images.empty()  ? "images"
                           : !given.split.empty() ? "split"
                           : !given.crowd.empty() ? "crowd"
                                                  : nullptr;
  if (name == nullptr) return {};
  return config_error(std::string(name) +
                      "= is for annotated images (\"coco\", \"voc\", \"yolo\"), but the format of the source is \"" +
                      std::string(entry.name) + "\"");
}

// Returns the manifest of a local folder of packed TFRecord or Parquet files, and checks that packing has finished. The
// other entries check it themselves or, for MDS, need an index that is written last.
Result<std::optional<PackedFolder>> finished_folder(const FormatEntry& entry, const std::string& source,
                                                    const storage::Storage& storage) {
  const bool is_of_shards = &entry == &tfrecord_entry() || &entry == &parquet_entry();
  if (!is_of_shards || storage.is_remote() || is_list(source) || !storage.is_directory(source).value_or(false))
    return std::nullopt;
  return packed_folder(source, storage);
}

// Returns options that read the fields of a packed folder, or nullopt if `options` has fields or the format finds them.
std::optional<OpenOptions> with_packed_fields(const std::optional<PackedFolder>& packed, const OpenOptions& options) {
  if (!packed || packed->fields.empty() || !options.fields.empty()) return std::nullopt;
  OpenOptions made = options;
  made.fields = packed->fields;
  return made;
}

// Checks that field names are valid UTF-8, which Python requires. Damaged files may contain any names.
Result<void> check_names(const Format& format) {
  for (const FieldDescription& field : format.fields())
    if (!text::check_utf8(std::as_bytes(std::span(field.name))))
      return data_error("a field's name is not valid UTF-8: \"" + field.name + '"', "format");
  return {};
}

OpenOptions with_storage(OpenOptions options) {
  if (!options.storage) options.storage = storage::local_storage();
  return options;
}

}  // namespace

bool is_format(std::string_view name) { return entry_named(name) != nullptr; }

bool is_extension_of_engine(std::string_view extension) {
  // of formats that look at the contents or at several names
  static constexpr std::string_view kOthers[] = {"json", "jsonl", "csv", "tsv", "npy", "mdb", "bin",    "idx", "ds",
                                                 "yaml", "yml",   "xml", "txt", "gz",  "zst", "pixels", "bz2"};
  const std::string name = "file." + std::string(extension);
  return std::ranges::find(kOthers, extension) != std::end(kOthers) ||
         decode::format_of_extension(extension) != nullptr || is_audio_name(name) || is_video_name(name) ||
         std::ranges::any_of(entries(), [&](const FormatEntry* entry) {
           return entry->names_shard != nullptr && entry->names_shard(name);
         });
}

Result<std::shared_ptr<const Format>> open(const std::string& source, const OpenOptions& given) {
  const OpenOptions options = with_storage(given);
  const auto entry = entry_of(source, options);
  if (!entry) return located(entry.error(), source);
  if (auto fits = check_options(**entry, options); !fits) return located(fits.error(), source);
  const auto packed = finished_folder(**entry, source, *options.storage);
  if (!packed) return located(packed.error(), source);
  auto format = (*entry)->open(source, options);
  if (!format && format.error().code == ErrorCode::kConfig)
    if (const auto all = with_packed_fields(*packed, options)) format = (*entry)->open(source, *all);
  if (!format) return located(with_archive_kind(std::move(format).error(), source, options), source);
  if (auto named = check_names(**format); !named) return located(named.error(), source);
  if (auto has_library = check_audio_library(**format); !has_library) return located(has_library.error(), source);
  return format;
}

Result<Inspection> inspect(const std::string& source, const OpenOptions& given) {
  const OpenOptions options = with_storage(given);
  const auto entry = entry_of(source, options);
  if (!entry) return located(entry.error(), source);
  if (auto fits = check_options(**entry, options); !fits) return located(fits.error(), source);
  const auto packed = finished_folder(**entry, source, *options.storage);
  if (!packed) return located(packed.error(), source);
  auto inspection = (*entry)->inspect(source, options);
  if (inspection && inspection->fields.empty())
    if (const auto all = with_packed_fields(*packed, options)) inspection = (*entry)->inspect(source, *all);
  if (!inspection) return located(std::move(inspection).error(), source);
  return inspection;
}

}  // namespace feedline::format
