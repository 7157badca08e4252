// SPDX-License-Identifier: Apache-2.0
#include "cache/persisted_tables.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "cache/checksum.h"
#include "cache/output_file.h"
#include "cache/places.h"

namespace feedline::cache {

std::vector<std::string> PersistedTables::locations(const storage::Storage& storage, const std::string& object) const {
  // objects of several folders share this one: the digest distinguishes "train/0.tar" from "val/0.tar"
  const auto collected = [&](const std::string& folder) {
    return folder + "/" + last_part(object) + "-" + digest_of(storage.identity(object)) + std::string(kind_.suffix);
  };
  if (!directory_.empty()) return {collected(directory_)};
  std::vector<std::string> list;
  if (const auto path = kind_.next_to_object ? storage.local_path(object) : std::nullopt)
    list.push_back(
        (std::filesystem::path(folder_of(*path)) / kIndexFolder / (last_part(*path) + std::string(kind_.suffix)))
            .string());
  if (const auto folder = cache_folder()) list.push_back(collected(*folder + "/index"));
  return list;
}

std::vector<std::string> PersistedTables::known_locations(const storage::Storage& storage,
                                                          const std::string& object) const {
  auto list = locations(storage, object);
  if (const auto path = kind_.next_to_object && directory_.empty() ? storage.local_path(object) : std::nullopt)
    list.push_back(*path + std::string(kind_.suffix));
  return list;
}

bool PersistedTables::is_ours(const std::string& location, std::span<const std::byte> file) const {
  if (!is_foreign(file, kind_.frame)) return true;
  if (notes_)
    notes_->add("indexes in '" + folder_of(location) + "' were written by another version of Feedline and are rebuilt");
  return false;
}

void PersistedTables::read(const storage::Storage& storage, const std::string& object, std::uint64_t most_bytes,
                           const Take& take) const {
  for (const std::string& location : known_locations(storage, object)) {
    Bytes bytes;
    const auto file = storage::local_storage()->read_all(location, bytes.buffer, most_bytes);
    if (!file || !is_ours(location, *file)) continue;
    bytes.file = *file;
    bytes.location = location;
    if (take(std::move(bytes))) return;
  }
}

void PersistedTables::map(const storage::Storage& storage, const std::string& object, const Take& take) const {
  const auto local = storage::local_storage();
  for (const std::string& location : known_locations(storage, object)) {
    const auto stat = local->stat(location);
    if (!stat) continue;
    auto opened = local->open(location, storage::Access::kMap);
    if (!opened) continue;
    const std::shared_ptr<const storage::Reader> reader = std::move(*opened);
    const auto view = reader->view(0, stat->bytes);
    if (view && *view && is_ours(location, **view) && take({**view, {}, reader, location})) return;
  }
}

Result<void> PersistedTables::save(const storage::Storage& storage, const std::string& object,
                                   std::span<const std::byte> file) const {
  Result<void> saved;
  for (const std::string& location : locations(storage, object)) {
    saved = make_folder(folder_of(location));
    if (saved) saved = write_file(location, file, Flush::kNo);
    if (saved) return {};
  }
  if (!directory_.empty()) return saved;
  if (notes_ && !saved)
    notes_->add("an index could not be stored and will be rebuilt next time: " + saved.error().message());
  return {};
}

void PersistedTables::forget(const storage::Storage& storage, const std::string& object) const {
  for (const std::string& location : known_locations(storage, object)) ::unlink(location.c_str());
}

std::vector<std::string> locations_of_source(FrameKind frame, std::string_view suffix, const storage::Storage& storage,
                                             const std::string& source, const std::string& directory) {
  const bool is_file =
      storage.local_path(source) && storage.stat(source).has_value() && !storage.is_directory(source).value_or(true);
  std::string object = source;
  while (object.size() > 1 && object.back() == '/') object.pop_back();
  return PersistedTables({frame, suffix, is_file}, directory, nullptr).locations(storage, object);
}

}  // namespace feedline::cache
