// SPDX-License-Identifier: Apache-2.0
#include "storage/hub/hub_storage.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "storage/http/http_transport.h"
#include "storage/http/url.h"

namespace feedline::storage {
namespace {

constexpr auto kWindowOfLimits = std::chrono::seconds(330);  // the Hub's limits are per 300 s

HttpLimits limits_of_hub(HttpLimits limits) {
  limits.longest_retry_after = std::max<std::chrono::milliseconds>(limits.longest_retry_after, kWindowOfLimits);
  return limits;
}

Version version_of(const HubFile& file) {
  return {file.bytes, 0, file.hash.empty() ? 0 : tag_of('"' + file.hash + '"')};
}

std::optional<ObjectSum> sum_of_file(const HubFile& file) {
  return file.is_large ? sum_of_hex(SumKind::kSha256, file.hash) : std::nullopt;
}

std::unexpected<Error> named(std::unexpected<Error> error, const std::string& path) {
  error.error().where.shard = path;
  return error;
}

Result<HubName> name_of(const std::string& path) {
  auto name = hub_name(path);
  if (!name) return named(config_error("'" + path + "' does not name a dataset on the Hub"), path);
  return std::move(*name);
}

Result<HubFile> file_of(const HubCatalog& catalog, const std::string& path) {
  FEEDLINE_TRY(const HubName name, name_of(path));
  FEEDLINE_TRY(auto found, catalog.file(name));
  if (!found) return named(storage_error("the dataset has no such file in this revision", ENOENT), path);
  return std::move(*found);
}

// Returns nullptr if the file is not in the local cache.
std::unique_ptr<Reader> open_here(const HubSite& site, const std::string& path, Access access, const Version& version) {
  const auto name = hub_name(path);
  const auto here = name ? LocalHub(site.settings().cache).file(*name, version.bytes) : std::nullopt;
  if (!here) return nullptr;
  auto reader = local_storage()->open(*here, access);
  if (!reader) return nullptr;
  return std::make_unique<LocalHubReader>(path, version, std::move(*reader));
}

Result<std::span<const std::byte>> read_whole(const Reader& reader, std::uint64_t bytes, memory::ByteBuffer& buffer,
                                              std::uint64_t most) {
  const auto room = buffer.make_room(bytes, most);
  if (!room) return named(std::unexpected(room.error()), reader.name());
  FEEDLINE_TRY(const std::size_t got, reader.read_at(0, *room));
  return room->first(got);
}

bool read_here(const HubSite& site, const HubCatalog& catalog, Read& read) {
  auto version = read.version;
  if (!version)
    if (const auto file = file_of(catalog, read.piece.path)) version = version_of(*file);
  const auto reader = version ? open_here(site, read.piece.path, Access::kRead, *version) : nullptr;
  if (reader) read.bytes = read_whole(*reader, version->bytes, read.buffer, read.most_bytes);
  return reader != nullptr;
}

}  // namespace

HubStorage::HubStorage(HubSettings settings, HttpLimits limits, Client* client)
    : HubStorage({.limits = limits_of_hub(limits), .client = client},
                 std::make_shared<const HubSite>(std::move(settings))) {}

HubStorage::HubStorage(Remote remote, std::shared_ptr<const HubSite> site)
    : HubStorage(remote, site, std::make_shared<const HubCatalog>(site, remote.limits, remote.client)) {}

HubStorage::HubStorage(Remote remote, std::shared_ptr<const HubSite> site, std::shared_ptr<const HubCatalog> catalog)
    : RemoteStorage([&] {
        remote.site = site;
        // transports may outlive this object
        remote.reads_here = [site, catalog](Read& read) { return read_here(*site, *catalog, read); };
        return std::move(remote);
      }()),
      site_(site),
      catalog_(catalog) {}

std::shared_ptr<const Storage> HubStorage::reading(const Reading& how) const {
  return std::shared_ptr<const Storage>(new HubStorage(remote_so(how), site_, catalog_));
}

Result<std::unique_ptr<Reader>> HubStorage::open(const std::string& path, Access access) const {
  FEEDLINE_TRY(const Version version, stat(path));
  return open_version(path, access, version);
}

Result<std::unique_ptr<Reader>> HubStorage::open_version(const std::string& path, Access access,
                                                         const Version& version) const {
  if (auto reader = open_here(*site_, path, access, version)) return reader;
  return RemoteStorage::open_version(path, access, version);
}

Result<std::span<const std::byte>> HubStorage::read_all(const std::string& path, memory::ByteBuffer& buffer,
                                                        std::uint64_t most) const {
  FEEDLINE_TRY(const Version version, stat(path));
  return read_version(path, buffer, most, version);
}

Result<std::span<const std::byte>> HubStorage::read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                            std::uint64_t most, const Version& version) const {
  if (const auto here = open_here(*site_, path, Access::kRead, version))
    return read_whole(*here, version.bytes, buffer, most);
  return RemoteStorage::read_version(path, buffer, most, version);
}

Result<ObjectStat> HubStorage::stat(const std::string& path) const {
  FEEDLINE_TRY(const HubFile found, file_of(*catalog_, path));
  return version_of(found);
}

Result<void> HubStorage::check_known(const std::string& path, const Version& version) const {
  FEEDLINE_TRY(const Version now, stat(path));
  return check_version(path, version, now);
}

Result<std::optional<ObjectSum>> HubStorage::known_sum(const std::string& path, const Version& /*version*/) const {
  if (!remote_.reading.compares_sums) return std::nullopt;
  FEEDLINE_TRY(const HubFile found, file_of(*catalog_, path));
  auto sum = sum_of_file(found);
  if (!sum) ++remote_.traffic->without_sum;
  return sum;
}

Result<Tree> HubStorage::list_below(const std::string& directory, Depth depth) const {
  FEEDLINE_TRY(HubName folder, name_of(directory));
  FEEDLINE_TRY(const auto files, catalog_->below(folder, depth == Depth::kAll));
  while (folder.path.ends_with('/')) folder.path.pop_back();
  const std::size_t prefix = folder.path.empty() ? 0 : folder.path.size() + 1;
  Tree tree;
  for (const HubFile& file : files) {
    if (!file.is_folder)
      tree.objects.push_back({file.path.substr(prefix), file.bytes, version_of(file).tag});
    else if (depth == Depth::kFolder)
      tree.folders.push_back(file.path.substr(prefix));
  }
  return tree;
}

Result<std::vector<Entry>> HubStorage::list(const std::string& directory) const {
  FEEDLINE_TRY(const Tree tree, list_below(directory, Depth::kFolder));
  std::vector<Entry> entries;
  for (const StoredBelow& object : tree.objects) entries.push_back({object.path, false});
  for (const std::string& folder : tree.folders) entries.push_back({folder, true});
  std::ranges::sort(entries, {}, &Entry::name);
  if (!entries.empty()) return entries;
  return named(storage_error("the dataset has no such folder in this revision", ENOENT), directory);
}

Result<bool> HubStorage::is_directory(const std::string& path) const {
  FEEDLINE_TRY(const HubName name, name_of(path));
  if (name.path.empty() || name.path.ends_with('/')) return true;
  FEEDLINE_TRY(const auto found, catalog_->file(name));
  if (found) return false;
  FEEDLINE_TRY(const auto below, catalog_->below(name, false));
  return !below.empty();
}

std::string HubStorage::identity(const std::string& path) const {
  return path + " at " + normal_url(site_->settings().endpoint);
}

std::shared_ptr<const HubStorage> hub_storage() {
  static ForkMutex* const mutex = new ForkMutex;
  static auto* const storages = new std::map<HubSettings, std::shared_ptr<const HubStorage>>;
  HubSettings settings = hub_settings();
  const std::lock_guard lock(*mutex);
  auto& storage = (*storages)[settings];
  if (!storage) storage = std::make_shared<const HubStorage>(std::move(settings));
  return storage;
}

Result<std::string> pinned_hub_url(std::string_view url, bool is_new) {
  const auto name = hub_name(url);
  if (!name)
    return config_error("open: '" + std::string(url) +
                        "': write hf://datasets/ORG/NAME, hf://datasets/ORG/NAME@REVISION or "
                        "hf://datasets/ORG/NAME@REVISION/path");
  FEEDLINE_TRY(const HubName pinned, hub_storage()->catalog().pin(*name, is_new));
  return pinned.text();
}

}  // namespace feedline::storage
