// SPDX-License-Identifier: Apache-2.0
#include "cache/node/cached_storage.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/cpus.h"
#include "base/local_ranks.h"
#include "cache/checksum.h"
#include "cache/node/cached_reader.h"
#include "storage/local_file.h"
#include "storage/local_storage.h"

namespace feedline::cache {
namespace {

using storage::Access;
using storage::Reader;
using storage::Storage;
using storage::Version;

// Returns the whole copy after verifying its checksum; nullopt if it does not match its entry.
Result<std::optional<std::span<const std::byte>>> read_copy(const HeldCopy& held, const std::string& name,
                                                            memory::ByteBuffer& buffer, std::uint64_t most) {
  const storage::FileRead read(name, buffer, held.entry.version.bytes, most);
  FEEDLINE_TRY(const auto bytes, storage::read_file(storage::system_reads(), held.file.get(), read));
  if (bytes.size() != held.entry.version.bytes || xxh3(bytes) != held.entry.checksum) return std::nullopt;
  return bytes;
}

// The memory limit for fetching shards while they are opened, before a loader's budget is known. This limit is enough
// to open 32 shards at once.
std::uint64_t memory_without_loaders() {
  constexpr std::uint64_t kMost = std::uint64_t{128} << 20, kShare = 8;
  return std::min(kMost, base::usable_memory_bytes() / kShare / static_cast<std::uint64_t>(base::local_ranks().count));
}

}  // namespace

// The open readers, by object name. Thread-safe.
class CachedStorage::OpenReaders {
 public:
  void add(std::shared_ptr<const CachedReader> reader) {
    const std::lock_guard lock(mutex_);
    auto& of_one = readers_[reader->identity()];
    std::erase_if(of_one, [](const auto& other) { return other.expired(); });
    of_one.push_back(std::move(reader));
  }
  std::vector<std::shared_ptr<const CachedReader>> of(const std::string& identity) {
    std::vector<std::shared_ptr<const CachedReader>> readers;
    const std::lock_guard lock(mutex_);
    const auto found = readers_.find(identity);
    if (found == readers_.end()) return readers;
    for (const auto& reader : found->second)
      if (auto open = reader.lock()) readers.push_back(std::move(open));
    if (readers.empty()) readers_.erase(found);
    return readers;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<std::weak_ptr<const CachedReader>>> readers_;
};

namespace {

// The reader that callers own, which forwards to a reader that let_go() can find.
class OwnedReader final : public Reader {
 public:
  explicit OwnedReader(std::shared_ptr<const CachedReader> reader) : reader_(std::move(reader)) {}
  Result<storage::ObjectStat> stat() const override { return reader_->stat(); }
  Result<storage::ObjectStat> version() const override { return reader_->version(); }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    return reader_->read_at(offset, out);
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t offset, std::size_t bytes) const override {
    return reader_->view(offset, bytes);
  }
  std::size_t worthwhile_bytes() const override { return reader_->worthwhile_bytes(); }
  int descriptor() const override { return reader_->descriptor(); }
  const std::string& name() const override { return reader_->name(); }

 private:
  const std::shared_ptr<const CachedReader> reader_;
};

}  // namespace

CachedStorage::CachedStorage(std::shared_ptr<const Storage> storage, std::shared_ptr<NodeCache> cache)

    : storage_(std::move(storage)),
      cache_(std::move(cache)),
      memory_(std::make_shared<PieceMemory>(memory_without_loaders())),
      readers_(std::make_unique<OpenReaders>()) {}

CachedStorage::~CachedStorage() = default;

std::unique_ptr<Reader> CachedStorage::reader_of(const std::string& path, Access access, const Version& version,
                                                 std::shared_ptr<const Reader> stored,
                                                 std::shared_ptr<const Reader> copy) const {
  auto reader = std::make_shared<const CachedReader>(
      storage_, cache_, memory_, CachedReader::Object{path, storage_->identity(path), version, access},
      std::move(stored), std::move(copy));
  readers_->add(reader);
  return std::make_unique<OwnedReader>(std::move(reader));
}

Result<std::unique_ptr<Reader>> CachedStorage::open(const std::string& path, Access access) const {
  if (const auto version = storage_->stat(path))
    if (auto held = cache_->find(storage_->identity(path), *version, NodeCache::Check::kOnce)) {
      FEEDLINE_TRY(auto copy, open_copy(std::move(*held), path, access));
      return reader_of(path, access, *version, nullptr, std::move(copy));
    }
  FEEDLINE_TRY(auto stored, storage_->open(path, Access::kRead));
  FEEDLINE_TRY(const Version version, stored->version());
  return reader_of(path, access, version, std::move(stored), nullptr);
}

Result<std::unique_ptr<Reader>> CachedStorage::open_version(const std::string& path, Access access,
                                                            const Version& version) const {
  if (!storage_->is_remote()) return Storage::open_version(path, access, version);
  if (auto held = cache_->find(storage_->identity(path), version, NodeCache::Check::kOnce)) {  // without a request
    FEEDLINE_TRY(auto copy, open_copy(std::move(*held), path, access));
    return reader_of(path, access, version, nullptr, std::move(copy));
  }
  FEEDLINE_TRY(auto stored, storage_->open_version(path, Access::kRead, version));
  return reader_of(path, access, version, std::move(stored), nullptr);
}

Result<std::unique_ptr<Reader>> CachedStorage::open_part(const std::string& path,
                                                         const std::optional<Version>& version) const {
  const auto open_stored = [&] {
    return version ? storage_->open_version(path, Access::kRead, *version) : storage_->open(path, Access::kRead);
  };
  std::unique_ptr<Reader> stored;
  if (!version) {
    FEEDLINE_TRY(stored, open_stored());
  }
  FEEDLINE_TRY(const Version wanted, version ? Result<Version>(*version) : stored->version());
  if (auto held = cache_->find(storage_->identity(path), wanted, NodeCache::Check::kOnce)) {
    FEEDLINE_TRY(auto copy, open_copy(std::move(*held), path, Access::kRead));
    return reader_of(path, Access::kRead, wanted, nullptr, std::move(copy));
  }
  if (stored) return stored;
  return open_stored();
}

Result<std::optional<HeldCopy>> CachedStorage::bring(const std::string& path, const Version& version,
                                                     Stop& stop) const {
  const auto open_stored = [&]() -> Result<std::shared_ptr<const Reader>> {
    return storage_->open_version(path, Access::kRead, version);
  };
  return copy_whole(*cache_, Whole{storage_, path, version, *memory_, open_stored}, NodeCache::Busy::kLeave, &stop);
}

void CachedStorage::let_go(const std::string& path) const {
  for (const auto& reader : readers_->of(storage_->identity(path))) reader->let_go();
}

Result<std::span<const std::byte>> CachedStorage::read_all(const std::string& path, memory::ByteBuffer& buffer,
                                                           std::uint64_t most) const {
  const auto version = storage_->stat(path);
  if (!version || version->bytes > most) return storage_->read_all(path, buffer, most);  // which reports the error
  return read_version(path, buffer, most, *version);
}

Result<std::span<const std::byte>> CachedStorage::read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                               std::uint64_t most, const Version& version) const {
  if (version.bytes > most) return storage_->read_version(path, buffer, most, version);
  std::optional<std::span<const std::byte>> fetched;
  const auto fill = [&](NodeCache::Output& output) -> Result<void> {
    FEEDLINE_TRY(fetched, storage_->read_version(path, buffer, most, version));
    if (fetched->size() != version.bytes)
      return storage::check_version(path, version, {fetched->size(), version.mtime_ns, version.tag});
    return output.append(*fetched);
  };
  for (const bool again : {false, true}) {  // retried if the copy is damaged
    FEEDLINE_TRY(auto held, cache_->keep(storage_->identity(path), version, NodeCache::Check::kNo, fill));
    if (fetched) return *fetched;
    if (!held) break;
    FEEDLINE_TRY(const auto bytes, read_copy(*held, path, buffer, most));
    if (bytes) return *bytes;
    if (!again) cache_->discard(std::move(*held));
  }
  return storage_->read_version(path, buffer, most, version);
}

std::string CachedStorage::summary() const {
  const std::string inner = storage_->summary();
  return inner + (inner.empty() ? "" : "; ") + cache_->summary();
}

Result<std::shared_ptr<const Storage>> through_cache(std::shared_ptr<const Storage> storage, const std::string& folder,
                                                     CacheLimit limit) {
  if (folder.empty()) return storage;
  FEEDLINE_TRY(auto cache, shared_cache(folder, limit));
  return std::make_shared<CachedStorage>(std::move(storage), std::move(cache));
}

}  // namespace feedline::cache
