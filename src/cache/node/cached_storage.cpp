// SPDX-License-Identifier: Apache-2.0
#include "cache/node/cached_storage.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include "cache/checksum.h"
#include "storage/local_file.h"
#include "storage/mapped_reader.h"
#include "storage/pread_reader.h"

namespace feedline::cache {
namespace {

using storage::Access;
using storage::ObjectStat;
using storage::ObjectSum;
using storage::Reader;
using storage::Storage;
using storage::Version;

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;  // of an object that is fetched

// The bytes of a copy. The lock that keeps it is the descriptor's: of the reader itself, or beside the mapping.
struct OpenCopy {
  std::unique_ptr<Reader> reader;
  storage::FileDescriptor lock;
};

Result<OpenCopy> open_copy(Kept kept, const std::string& name, Access access) {
  if (access == Access::kRead)
    return OpenCopy{std::make_unique<storage::PreadReader>(name, std::move(kept.fd), storage::system_reads()), {}};
  const std::string path = kept.path + std::string(kObject);
  FEEDLINE_TRY(auto reader, storage::local_storage()->open(path, Access::kMap));
  return OpenCopy{std::move(reader), std::move(kept.fd)};
}

// said: what is known of the object's bytes; gives what they are instead where they are others.
Result<std::optional<ObjectSum>> fetch(const Reader& reader, const Version& version,
                                       const std::optional<ObjectSum>& said, NodeCache::Output& output) {
  storage::RunningSum running(said ? said->kind : storage::SumKind::kCrc32c);
  memory::ByteBuffer buffer;
  const std::uint64_t piece = std::max(kPieceBytes, reader.worthwhile_bytes());
  const auto room = buffer.resize(static_cast<std::size_t>(std::min(piece, version.bytes)));
  for (std::uint64_t at = 0; at < version.bytes;) {
    const auto part = room.first(static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), version.bytes - at)));
    FEEDLINE_TRY(const std::size_t got, reader.read_at(at, part));
    if (said) running.add(part.first(got));
    FEEDLINE_CHECK_OK(output.append(part.first(got)));
    if (got < part.size()) break;  // the output says how much is missing
    at += got;
  }
  FEEDLINE_TRY(const Version now, reader.version());
  FEEDLINE_CHECK_OK(storage::check_version(reader.name(), version, now));
  const ObjectSum read = running.sum();
  return said && read != *said ? std::optional(read) : std::nullopt;
}

// An object of one version: glances and what cannot be kept are read where it is stored, all else from its copy.
class CachedReader final : public Reader {
 public:
  CachedReader(std::shared_ptr<const Storage> storage, std::unique_ptr<Reader> stored, const Version& version,
               std::string identity, Access access, std::shared_ptr<NodeCache> cache)
      : storage_(std::move(storage)),
        stored_(std::move(stored)),
        version_(version),
        identity_(std::move(identity)),
        name_(stored_->name()),
        access_(access),
        cache_(std::move(cache)) {}
  CachedReader(OpenCopy copy, const Version& version, std::string name)
      : version_(version), name_(std::move(name)), access_(Access::kRead), copy_(std::move(copy)) {
    bytes_.store(copy_.reader.get(), std::memory_order_release);
  }

  Result<ObjectStat> stat() const override {
    const Reader* bytes = bytes_.load(std::memory_order_acquire);
    return bytes == nullptr || bytes == stored_.get() ? stored_->stat() : Result<ObjectStat>(version_);
  }
  Result<ObjectStat> version() const override {
    const Reader* bytes = bytes_.load(std::memory_order_acquire);
    return bytes == nullptr || bytes == stored_.get() ? stored_->version() : Result<ObjectStat>(version_);
  }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const Reader* bytes = bytes_.load(std::memory_order_acquire);
    if (bytes == nullptr && offset < kGlanceBytes && out.size() <= kGlanceBytes - offset)
      return stored_->read_at(offset, out);
    FEEDLINE_TRY(bytes, readable());
    return bytes->read_at(offset, out);
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t offset, std::size_t count) const override {
    FEEDLINE_TRY(const Reader* const bytes, readable());
    return bytes->view(offset, count);
  }
  std::size_t worthwhile_bytes() const override {
    const Reader* bytes = bytes_.load(std::memory_order_acquire);
    return (bytes != nullptr ? *bytes : *stored_).worthwhile_bytes();
  }
  int descriptor() const override {
    const Reader* bytes = bytes_.load(std::memory_order_acquire);
    return bytes != nullptr ? bytes->descriptor() : -1;
  }
  const std::string& name() const override { return name_; }

 private:
  Result<const Reader*> readable() const {
    if (const Reader* bytes = bytes_.load(std::memory_order_acquire)) return bytes;
    const std::lock_guard lock(mutex_);
    if (const Reader* bytes = bytes_.load(std::memory_order_relaxed)) return bytes;
    FEEDLINE_TRY(auto kept, keep());
    if (kept) {
      FEEDLINE_TRY(copy_, open_copy(std::move(*kept), name_, access_));
    }
    const Reader* bytes = kept ? copy_.reader.get() : stored_.get();
    bytes_.store(bytes, std::memory_order_release);
    return bytes;
  }

  // Bytes that are not those that somebody vouches for are fetched once more: they may have been damaged under way.
  Result<std::optional<Kept>> keep() const {
    std::optional<ObjectSum> said, other;
    const auto fill = [&](NodeCache::Output& output) -> Result<void> {
      FEEDLINE_TRY(said, storage_->known_sum(name_, version_));
      FEEDLINE_TRY(other, fetch(*stored_, version_, said, output));
      if (!other) return {};
      return storage::sums_differ(name_, *said, *other, storage_->who_knows_sums());
    };
    auto kept = cache_->keep(identity_, version_, NodeCache::Check::kOnce, fill);
    if (!kept && std::exchange(other, std::nullopt))
      kept = cache_->keep(identity_, version_, NodeCache::Check::kOnce, fill);
    if (kept && said) cache_->note_compared();
    return kept;
  }

  const std::shared_ptr<const Storage> storage_;
  const std::unique_ptr<Reader> stored_;  // nullptr: there was a copy from the beginning
  const Version version_;
  const std::string identity_, name_;
  const Access access_;
  const std::shared_ptr<NodeCache> cache_;
  mutable std::mutex mutex_;
  mutable OpenCopy copy_;                              // guarded by mutex_ until bytes_ says that it is there
  mutable std::atomic<const Reader*> bytes_{nullptr};  // nullptr: nobody has read yet
};

// The whole copy, compared with its checksum; nullopt: it is not what its entry says.
Result<std::optional<std::span<const std::byte>>> read_copy(const Kept& kept, const std::string& name,
                                                            memory::ByteBuffer& buffer, std::uint64_t most) {
  const storage::FileRead read(name, buffer, kept.entry.version.bytes, most);
  FEEDLINE_TRY(const auto bytes, storage::read_file(storage::system_reads(), kept.fd.get(), read));
  if (bytes.size() != kept.entry.version.bytes || xxh3(bytes) != kept.entry.checksum) return std::nullopt;
  return bytes;
}

}  // namespace

CachedStorage::CachedStorage(std::shared_ptr<const Storage> storage, std::shared_ptr<NodeCache> cache)
    : storage_(std::move(storage)), cache_(std::move(cache)) {}

Result<std::unique_ptr<Reader>> CachedStorage::open(const std::string& path, Access access) const {
  const std::string identity = storage_->identity(path);
  if (const auto version = storage_->stat(path))
    if (auto kept = cache_->find(identity, *version, NodeCache::Check::kOnce)) {
      FEEDLINE_TRY(OpenCopy copy, open_copy(std::move(*kept), path, access));
      return std::make_unique<CachedReader>(std::move(copy), *version, path);
    }
  FEEDLINE_TRY(auto stored, storage_->open(path, Access::kRead));
  FEEDLINE_TRY(const Version version, stored->version());
  return std::make_unique<CachedReader>(storage_, std::move(stored), version, identity, access, cache_);
}

Result<std::unique_ptr<Reader>> CachedStorage::open_version(const std::string& path, Access access,
                                                            const Version& version) const {
  if (!storage_->is_remote()) return Storage::open_version(path, access, version);
  const std::string identity = storage_->identity(path);
  if (auto kept = cache_->find(identity, version, NodeCache::Check::kOnce)) {  // and nobody is asked
    FEEDLINE_TRY(OpenCopy copy, open_copy(std::move(*kept), path, access));
    return std::make_unique<CachedReader>(std::move(copy), version, path);
  }
  FEEDLINE_TRY(auto stored, storage_->open_version(path, Access::kRead, version));
  return std::make_unique<CachedReader>(storage_, std::move(stored), version, identity, access, cache_);
}

Result<std::span<const std::byte>> CachedStorage::read_all(const std::string& path, memory::ByteBuffer& buffer,
                                                           std::uint64_t most) const {
  const auto version = storage_->stat(path);
  if (!version || version->bytes > most) return storage_->read_all(path, buffer, most);  // which says what is wrong
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
  for (const bool again : {false, true}) {  // once more where the copy is damaged
    FEEDLINE_TRY(auto kept, cache_->keep(storage_->identity(path), version, NodeCache::Check::kNo, fill));
    if (fetched) return *fetched;
    if (!kept) break;
    FEEDLINE_TRY(const auto bytes, read_copy(*kept, path, buffer, most));
    if (bytes) return *bytes;
    if (!again) cache_->discard(std::move(*kept));
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
