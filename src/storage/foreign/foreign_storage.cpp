// SPDX-License-Identifier: Apache-2.0
#include "storage/foreign/foreign_storage.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "storage/http/url.h"

namespace feedline::storage {
namespace {

// Never destroyed, because its backends may outlive other statics.
struct Known {
  std::mutex mutex;
  FindForeignStorage find;                                                      // guarded by mutex
  std::map<std::string, std::shared_ptr<const Storage>, std::less<>> storages;  // guarded by mutex
};
Known& known() {
  static Known* const all = new Known;
  return *all;
}

template <typename Value>
Result<Value> located(Result<Value> result, const std::string& path) {
  if (!result) result.error().where.shard = path;
  return result;
}

std::unexpected<Error> is_folder(const std::string& path) {
  auto error = storage_error("the path is a folder, but an object was expected", EISDIR);
  error.error().where.shard = path;
  return error;
}

ObjectStat stat_of(const ForeignObject& object) { return {object.bytes, 0, object.tag}; }

class AdaptedReader final : public Reader {
 public:
  AdaptedReader(std::shared_ptr<const ForeignStorage> foreign, std::string name, Version version)
      : foreign_(std::move(foreign)), name_(std::move(name)), version_(version) {}

  Result<ObjectStat> stat() const override {
    FEEDLINE_TRY(const ForeignObject now, located(foreign_->stat(with_secrets(name_)), name_));
    return stat_of(now);
  }
  Result<ObjectStat> version() const override { return version_; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t there = version_.bytes - std::min(offset, version_.bytes);
    out = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), there)));
    return out.empty() ? Result<std::size_t>(0) : located(foreign_->read(with_secrets(name_), offset, out), name_);
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  std::size_t worthwhile_bytes() const override {
    constexpr std::size_t kBytes = 8 << 20;  // as for HTTP: most of these calls need a round trip
    return kBytes;
  }
  const std::string& name() const override { return name_; }

 private:
  const std::shared_ptr<const ForeignStorage> foreign_;
  const std::string name_;
  const Version version_;
};

}  // namespace

Result<std::shared_ptr<const Storage>> foreign_storage(const std::string& scheme) {
  Known& all = known();
  FindForeignStorage find;
  {
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.storages.find(scheme); found != all.storages.end()) return found->second;
    find = all.find;
  }
  if (!find) return nullptr;
  FEEDLINE_TRY(auto foreign, find(scheme));  // it may block on another caller with the same request
  if (!foreign) return nullptr;
  const std::lock_guard lock(all.mutex);
  auto& storage = all.storages[scheme];
  if (!storage) storage = std::make_shared<AdaptedStorage>(std::move(foreign));
  return storage;
}

void add_foreign_storage(const std::string& scheme, std::shared_ptr<const ForeignStorage> foreign) {
  const std::lock_guard lock(known().mutex);
  known().storages[scheme] = std::make_shared<AdaptedStorage>(std::move(foreign));
}

bool has_foreign_storage(const std::string& scheme) {
  const std::lock_guard lock(known().mutex);
  return known().storages.contains(scheme);
}

Result<std::unique_ptr<Reader>> AdaptedStorage::open(const std::string& path, Access /*access*/) const {
  FEEDLINE_TRY(const ForeignObject object, located(foreign_->stat(with_secrets(path)), path));
  if (object.is_folder) return is_folder(path);
  return std::make_unique<AdaptedReader>(foreign_, path, stat_of(object));
}

Result<std::span<const std::byte>> AdaptedStorage::read_all(const std::string& path, memory::ByteBuffer& buffer,
                                                            std::uint64_t most) const {
  FEEDLINE_TRY(const ObjectStat now, stat(path));
  return read_version(path, buffer, most, now);
}

Result<std::span<const std::byte>> AdaptedStorage::read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                                std::uint64_t most, const Version& version) const {
  const auto checked = buffer.make_room(version.bytes, most);
  const auto room = checked ? buffer.make_room(version.bytes + 1, std::max(most, version.bytes + 1)) : checked;
  if (!room) {
    Error error = room.error();
    error.where.shard = path;
    return std::unexpected(std::move(error));
  }
  const AdaptedReader reader(foreign_, path, {room->size(), 0, 0});
  FEEDLINE_TRY(const std::size_t got, reader.read_at(0, *room));
  FEEDLINE_CHECK_OK(check_version(path, version, {got, version.mtime_ns, version.tag}));
  return room->first(got);
}

Result<std::vector<Entry>> AdaptedStorage::list(const std::string& directory) const {
  FEEDLINE_TRY(const auto found, located(foreign_->list(with_secrets(directory), false), directory));
  std::vector<Entry> entries;
  for (const ForeignObject& object : found) entries.push_back({object.path, object.is_folder});
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

Result<Tree> AdaptedStorage::list_below(const std::string& directory, Depth depth) const {
  FEEDLINE_TRY(auto found, located(foreign_->list(with_secrets(directory), depth == Depth::kAll), directory));
  Tree tree;
  for (ForeignObject& object : found)
    if (object.is_folder)
      tree.folders.push_back(std::move(object.path));
    else
      tree.objects.push_back({std::move(object.path), object.bytes, object.tag});
  return tree;
}

Result<ObjectStat> AdaptedStorage::stat(const std::string& path) const {
  FEEDLINE_TRY(const ForeignObject object, located(foreign_->stat(with_secrets(path)), path));
  if (object.is_folder) return is_folder(path);
  return stat_of(object);
}

Result<bool> AdaptedStorage::is_directory(const std::string& path) const {
  if (path.ends_with('/')) return true;
  FEEDLINE_TRY(const ForeignObject object, located(foreign_->stat(with_secrets(path)), path));
  return object.is_folder;
}

}  // namespace feedline::storage

namespace feedline {

void set_foreign_storages(FindForeignStorage find) {
  const std::lock_guard lock(storage::known().mutex);
  storage::known().find = std::move(find);
}

}  // namespace feedline
