// SPDX-License-Identifier: Apache-2.0
#include "format/sources/packed_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "memory/record.h"
#include "text/json_reader.h"

namespace feedline::format {
namespace {

constexpr std::string_view kManifest = "feedline-pack.json";               // begins with kManifestPrefix
constexpr std::string_view kUnfinished = "feedline-pack.unfinished.json";  // for folders in a bucket
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30U;              // a few hundred bytes per shard
constexpr std::string_view kTar = ".tar";

struct Manifest {
  std::vector<std::string> shards;
  std::vector<std::string> fields;
  bool is_complete = false, is_part = false;
};

std::optional<Manifest> parse_manifest(std::string_view text) {
  Manifest manifest;
  bool has_shards = false, has_complete = false;
  text::JsonReader reader(text);
  const auto take_shard = [&] {
    std::optional<std::string> name;
    const bool is_read = reader.object([&](std::string_view key) {
      if (key != "name") return reader.skip();
      name = reader.string();
      return name.has_value();
    });
    if (name) manifest.shards.push_back(std::move(*name));
    return is_read && name;
  };
  const auto take_field = [&] {
    auto field = reader.string();
    if (field) manifest.fields.push_back(std::move(*field));
    return field.has_value();
  };
  const auto take_argument = [&](std::string_view key) {
    return key == "fields" && reader.peek() == text::JsonReader::Kind::kArray ? reader.array(take_field)
                                                                              : reader.skip();
  };
  const bool is_read = reader.object([&](std::string_view key) {
    if (key == "arguments") return reader.object(take_argument);
    if (key == "shards") return has_shards = reader.array(take_shard);
    if (key == "complete") {
      const auto value = reader.boolean();
      has_complete = value.has_value();
      manifest.is_complete = value.value_or(false);
      return has_complete;
    }
    if (key == "part") manifest.is_part = reader.peek() != text::JsonReader::Kind::kNull;
    return reader.skip();
  });
  if (!is_read || !reader.finish() || !has_shards || !has_complete) return {};
  return manifest;
}

std::string without_slashes(std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder;
}

std::unexpected<Error> unfinished(const std::string& folder) {
  return config_error("packing into '" + folder + "' did not finish: run the same `feedline pack` command again");
}

// Matches "feedline-pack.000000-000009.json", the manifest of a range of shards.
bool is_range_name(std::string_view name) {
  constexpr std::string_view kEnd = ".json";
  if (name.size() <= kManifestPrefix.size() + kEnd.size() || !name.starts_with(kManifestPrefix) ||
      !name.ends_with(kEnd))
    return false;
  const std::string_view range =
      name.substr(kManifestPrefix.size(), name.size() - kManifestPrefix.size() - kEnd.size());
  return range.contains('-') && range.find_first_not_of("0123456789-") == range.npos;
}

// Reports that packing into a folder without a manifest has not finished.
Result<void> check_not_unfinished(const std::string& folder, const storage::Storage& storage) {
  const auto entries = storage.list(folder);
  if (!entries) return {};  // opening the folder reports the error
  for (const storage::Entry& entry : *entries) {
    if (entry.name == kUnfinished) return unfinished(folder);
    if (is_range_name(entry.name))
      return config_error("'" + folder + "' contains ranges of packed shards: run `feedline merge-index " + folder +
                          "`");
  }
  return {};
}

}  // namespace

bool has_manifest(const std::string& folder, const storage::Storage& storage) {
  return storage.stat(storage.below(without_slashes(folder), kManifest)).has_value();
}

bool PackedFolder::has(std::string_view extension) const {
  return std::ranges::all_of(shards, [&](const std::string& name) { return name.ends_with(extension); });
}

Result<std::optional<PackedFolder>> packed_folder(const std::string& given, const storage::Storage& storage) {
  const std::string folder = without_slashes(given), path = storage.below(folder, kManifest);
  memory::ByteBuffer room;
  const auto bytes = storage.read_all(path, room, kMostBytes);
  if (!bytes && bytes.error().system_errno == ENOENT) {
    FEEDLINE_CHECK_OK(check_not_unfinished(folder, storage));
    return std::nullopt;
  }
  if (!bytes) return std::unexpected(bytes.error());
  auto manifest = parse_manifest({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  const auto is_outside = [](const std::string& name) {
    return name.empty() || name.contains('/') || name.contains("::");
  };
  if (!manifest || std::ranges::any_of(manifest->shards, is_outside)) {
    auto error = data_error(
        "'" + path + "' is damaged: " +
            (manifest ? "the manifest names shards outside the folder" : "the file does not list packed shards") +
            "; copy it again, or name the shards one by one",
        "format");
    error.error().where.shard = path;
    return error;
  }
  if (!manifest->is_complete || manifest->is_part) return unfinished(folder);
  if (manifest->shards.empty())
    return config_error("'" + folder + "' was packed without a shard: its source had no samples");
  for (std::string& name : manifest->shards) name = storage.below(folder, name);
  return PackedFolder{std::move(manifest->shards), std::move(manifest->fields)};
}

Result<std::vector<std::string>> with_packed_tars(std::vector<std::string> names, const storage::Storage& storage) {
  std::vector<std::string> all;
  const bool is_only_one = names.size() == 1;
  for (std::string& name : names) {
    const bool may_be_folder = !storage.is_remote() || name.ends_with('/') || (is_only_one && !name.ends_with(kTar));
    std::optional<PackedFolder> packed;
    if (may_be_folder && storage.is_directory(name).value_or(false)) {
      FEEDLINE_TRY(packed, packed_folder(name, storage));
    }
    if (packed && packed->has(kTar))
      std::ranges::move(packed->shards, std::back_inserter(all));
    else
      all.push_back(std::move(name));
  }
  return all;
}

}  // namespace feedline::format
