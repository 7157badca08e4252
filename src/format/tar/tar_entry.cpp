// SPDX-License-Identifier: Apache-2.0
#include "format/tar/tar_entry.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "format/compression/compression.h"
#include "format/index/plain_copy.h"
#include "format/sources/folder_files.h"
#include "format/sources/glob.h"
#include "format/sources/image_names.h"
#include "format/sources/packed_folder.h"
#include "format/sources/sample_name.h"
#include "format/sources/source_list.h"
#include "format/tar/tar_format.h"
#include "format/tar/tar_header.h"
#include "format/tar/tar_inspection.h"

namespace feedline::format {
namespace {

// The maximum decompressed size of a shard's first bytes.
constexpr std::uint64_t kMostPlain = std::uint64_t{1} << 30U;

bool is_tar_name(std::string_view path) {
  const std::string name = to_lower(path);
  return name.ends_with(".tar") || name.ends_with(".tgz") || name.ends_with(".tar.gz");
}

// Checks gzip-compressed data. Fails with kConfig if the decompressed data is not a tar. Damage is reported later, when
// the file is opened.
Result<bool> looks_like_packed_tar(const storage::Reader& reader, const std::string& path) {
  constexpr std::size_t kPacked = 64 << 10;  // larger than any compressed block
  std::vector<std::byte> packed(kPacked);
  std::array<std::byte, kBlockBytes> block{};
  std::size_t made = 0;
  FEEDLINE_TRY(const std::size_t got, reader.read_at(0, packed));
  FEEDLINE_TRY(auto stream, StreamDecompression::start(Compression::kGzip, kMostPlain));
  const auto take = [&](std::span<const std::byte> part) -> Result<void> {
    const std::size_t taken = std::min(block.size() - made, part.size());
    std::copy_n(part.begin(), taken, block.begin() + static_cast<std::ptrdiff_t>(made));
    made += taken;
    return {};
  };
  const auto fed = stream.feed(std::span(packed).first(got), take);
  if (!fed && made < block.size()) return true;
  if (made == block.size() && (is_zero(block) || parse_header(block))) return true;
  return config_error("'" + path +
                      "' is compressed with gzip but is not a tar. The compressed files that can be read are tars and "
                      "the tables .csv.gz, .tsv.gz, .jsonl.gz and .json.gz: decompress it");
}

// Checks the contents of files whose names do not show their format.
Result<bool> looks_like_tar(const storage::Storage& storage, const std::string& path) {
  FEEDLINE_TRY(const auto reader, storage.open(path, storage::Access::kRead));
  FEEDLINE_TRY(const bool gzip, is_gzip(*reader));
  if (gzip) return looks_like_packed_tar(*reader, path);
  std::byte block[kBlockBytes];
  FEEDLINE_TRY(const std::size_t got, reader->read_at(0, block));
  return got == sizeof block && (is_zero(block) || parse_header(block));
}

// Returns whether this is a folder of shards. A folder of shards has tar files and no subfolders (which could be
// classes), or has subfolders with tar files and no images.
bool holds_tars(const std::string& folder, const storage::Storage& storage) {
  const auto entries = storage.list(folder);
  if (!entries) return false;
  const auto is_shard = [](const storage::Entry& entry) { return !entry.is_directory && is_tar_name(entry.name); };
  const auto may_be_sample = [](const storage::Entry& entry) {
    return !entry.name.starts_with('.') && (entry.is_directory || is_image_name(entry.name));
  };
  if (std::ranges::any_of(*entries, is_shard)) return std::ranges::none_of(*entries, may_be_sample);
  return first_data_file(folder, storage, is_tar_name).has_value();
}

Result<std::vector<std::string>> tars_of(const std::string& source, const storage::Storage& storage) {
  constexpr std::string_view kWhat = "tar file";
  FEEDLINE_TRY(const auto names, names_of_list(source, storage, kWhat));
  FEEDLINE_TRY(auto shards, with_packed_tars(names, storage));
  if (shards != names) return shards;
  // A request is needed to check whether a remote name is a folder, unless the name shows it.
  const bool is_shard = storage.is_remote() && (is_list(source) || is_tar_name(source.substr(0, source.find('?'))));
  if (is_shard || !storage.is_directory(source).value_or(false)) return shards_of(source, storage, kWhat);
  return files_of_folder(source, storage, is_tar_name, ".tar");
}

// If no file has the name `source`, it may be a list of files. If it is not a list, opening it reports that the file
// does not exist.
Result<bool> is_tar(const std::string& source, const storage::Storage& storage) {
  const auto folder = storage.is_directory(source);
  if (!folder) return true;
  // Remote folders are checked by the folder entry, so that opening a folder of images does not need requests for other
  // formats.
  if (*folder) return !storage.is_remote() && (has_manifest(source, storage) || holds_tars(source, storage));
  if (storage.is_remote())
    return true;  // the only remaining format: lists and the names of signed URLs are not looked
                  // up
  return is_tar_name(source) ? Result<bool>(true) : looks_like_tar(storage, source);
}

Result<std::shared_ptr<const Format>> open_tars(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto shards, tars_of(source, *options.storage));
  auto format = TarFormat::open(source, shards, options);
  if (!format && format.error().code == ErrorCode::kConfig && options.storage->is_directory(source).value_or(false))
    format.error().what += "; the folder contains " + shown_names(shards);
  return format;
}

Result<Inspection> inspect_tars(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto shards, tars_of(source, *options.storage));
  return inspect_tar(source, shards, options);
}

}  // namespace

const FormatEntry& tar_entry() {
  static constexpr FormatEntry kEntry{"tar", is_tar, open_tars, inspect_tars, false, is_tar_name};
  return kEntry;
}

}  // namespace feedline::format
