// SPDX-License-Identifier: Apache-2.0
#include "format/format.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "format/folder/folder_format.h"
#include "format/pixels/pixel_file.h"
#include "format/pixels/pixel_format.h"
#include "format/source_list.h"
#include "format/tar/gzip_cache.h"
#include "format/tar/sample_name.h"
#include "format/tar/tar_format.h"
#include "format/tar/tar_header.h"
#include "format/tar/tar_inspection.h"

namespace feedline::format {
namespace {

// What a source turned out to be. No shards: a folder, or a pixel file.
struct Resolved {
  OpenOptions options;
  std::vector<std::string> shards;
  bool pixels = false;
};

bool is_tar_name(const std::string& path) {
  const std::string name = to_lower(path);
  return name.ends_with(".tar") || name.ends_with(".tgz") || name.ends_with(".tar.gz");
}

// By content: for files whose name does not say what they are.
Result<bool> looks_like_tar(const storage::Storage& storage, const std::string& path) {
  FEEDLINE_TRY(const auto reader, storage.open(path, storage::Access::kRead));
  FEEDLINE_TRY(const bool gzip, is_gzip(*reader));
  std::byte block[kBlockBytes];
  FEEDLINE_TRY(const std::size_t got, reader->read_at(0, block));
  return gzip || (got == sizeof block && (is_zero(block) || parse_header(block)));
}

// Every part of a "::" list, its braces expanded; a file whose own name has braces is that file.
Result<std::vector<std::string>> resolve_shards(const storage::Storage& storage, const std::string& source) {
  std::vector<std::string> shards;
  for (const std::string& part : split_list(source)) {
    if (part.empty()) return config_error("the list of tar files has an empty name");
    if (part.find_first_of("{}") == std::string::npos || storage.stat(part)) {
      shards.push_back(part);
      continue;
    }
    FEEDLINE_TRY(const auto names, expand_braces(part));
    shards.insert(shards.end(), names.begin(), names.end());
  }
  for (const std::string& shard : shards)
    if (const auto folder = storage.is_directory(shard); folder && *folder)
      return config_error("'" + shard + "' is a folder; a tar file was expected");
  return shards;
}

Result<Resolved> resolve(const std::string& source, OpenOptions options) {
  if (!options.storage) options.storage = storage::local_storage();
  const storage::Storage& storage = *options.storage;
  if (!options.format.empty() && options.format != "folder" && options.format != "tar" && options.format != "pixels")
    return config_error("no such format: '" + options.format + "'; there are folder, tar and pixels");
  if (source.empty()) return config_error("the source is empty: a folder or tar files were expected");
  if (options.format == "pixels" || (options.format.empty() && is_pixel_file(storage, source)))
    return Resolved{std::move(options), {}, true};
  const auto folder = storage.is_directory(source);
  if (folder && *folder && options.format != "tar") return Resolved{std::move(options), {}, false};
  if (options.format == "folder") {
    if (folder) return config_error("'" + source + "' is a file; format \"folder\" reads a folder of class folders");
    return std::unexpected(folder.error());
  }
  if (folder && !*folder && options.format.empty() && !is_tar_name(source)) {
    FEEDLINE_TRY(const bool tar, looks_like_tar(storage, source));
    if (!tar) return config_error("'" + source + "' is neither a folder nor a tar file");
  }
  FEEDLINE_TRY(auto shards, resolve_shards(storage, source));
  return Resolved{std::move(options), std::move(shards), false};
}

std::unexpected<Error> located(Error error, const std::string& source) {
  error.where.dataset = source;
  return std::unexpected(std::move(error));
}

}  // namespace

Result<SampleFiles> Format::files(std::uint64_t /*index*/) const {
  return config_error("only folders of class folders and tars hold files that can be copied");
}

Result<std::uint64_t> Format::fill(std::span<const std::uint64_t> /*samples*/,
                                   std::span<const ArrayView> /*first_rows*/) const {
  FEEDLINE_CHECK(!"this format has no arrays");
}

Result<std::optional<storage::Piece>> Format::piece(std::uint64_t /*index*/) const {
  return std::optional<storage::Piece>();
}

Result<void> Format::accept(std::uint64_t /*index*/, std::span<const std::byte> /*bytes*/,
                            memory::Record& /*record*/) const {
  FEEDLINE_CHECK(!"this format gives no pieces");
}

std::uint64_t Format::length(std::uint64_t /*index*/, std::size_t /*field*/) const {
  FEEDLINE_CHECK(!"the samples of this format have one length");
}

std::uint64_t Format::longest(std::size_t /*field*/) const {
  FEEDLINE_CHECK(!"the samples of this format have one length");
}

bool is_filled(const Format& format) {
  return std::ranges::all_of(format.fields(), [](const auto& field) { return field.kind == FieldKind::kArray; });
}

bool is_ragged(const Format& format) {
  return std::ranges::any_of(format.fields(), [](const auto& field) { return field.array.is_ragged(); });
}

Result<std::shared_ptr<const Format>> open(const std::string& source, const OpenOptions& options) {
  auto resolved = resolve(source, options);
  if (!resolved) return located(std::move(resolved).error(), source);
  if (resolved->pixels) {
    auto format = PixelFormat::open(source, resolved->options);
    return format ? std::move(format) : located(std::move(format).error(), source);
  }
  if (resolved->shards.empty()) return FolderFormat::open(source, resolved->options);
  return TarFormat::open(source, resolved->shards, resolved->options);
}

Result<Inspection> inspect(const std::string& source, const OpenOptions& options) {
  auto resolved = resolve(source, options);
  if (!resolved) return located(std::move(resolved).error(), source);
  auto inspection = resolved->pixels           ? PixelFormat::inspect(source, resolved->options)
                    : resolved->shards.empty() ? FolderFormat::inspect(source, resolved->options)
                                               : inspect_tar(source, resolved->shards, resolved->options);
  if (!inspection) return located(std::move(inspection).error(), source);
  return inspection;
}

}  // namespace feedline::format
