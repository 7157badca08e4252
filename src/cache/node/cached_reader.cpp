// SPDX-License-Identifier: Apache-2.0
#include "cache/node/cached_reader.h"

#include <utility>

#include "storage/file_read.h"
#include "storage/local_file.h"
#include "storage/local_storage.h"

namespace feedline::cache {
namespace {

using storage::Access;
using storage::ObjectStat;
using storage::Reader;

// Releases the lock that protects the copy when it is destroyed.
class CopyReader final : public Reader {
 public:
  CopyReader(std::string name, HeldCopy held) : name_(std::move(name)), held_(std::move(held)) {}
  Result<ObjectStat> stat() const override { return held_.entry.version; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const storage::FileRead read(name_, out, offset);
    FEEDLINE_TRY(const auto bytes, storage::read_file(storage::system_reads(), held_.file.get(), read));
    return bytes.size();
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  int descriptor() const override { return held_.file.get(); }
  const std::string& name() const override { return name_; }

 private:
  const std::string name_;
  const HeldCopy held_;
};

// Reads a mapped copy, and releases the copy's lock when it is destroyed.
class MappedCopy final : public Reader {
 public:
  MappedCopy(std::unique_ptr<Reader> mapped, HeldCopy held) : held_(std::move(held)), mapped_(std::move(mapped)) {}
  Result<ObjectStat> stat() const override { return held_.entry.version; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    return mapped_->read_at(offset, out);
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t offset, std::size_t bytes) const override {
    return mapped_->view(offset, bytes);
  }
  const std::string& name() const override { return mapped_->name(); }

 private:
  const HeldCopy held_;
  const std::unique_ptr<Reader> mapped_;
};

}  // namespace

Result<std::shared_ptr<const Reader>> open_copy(HeldCopy held, const std::string& name, Access access) {
  if (access == Access::kRead) return std::make_shared<const CopyReader>(name, std::move(held));
  FEEDLINE_TRY(auto mapped, storage::local_storage()->open(held.path + std::string(kObject), Access::kMap));
  return std::make_shared<const MappedCopy>(std::move(mapped), std::move(held));
}

CachedReader::CachedReader(std::shared_ptr<const storage::Storage> storage, std::shared_ptr<NodeCache> cache,
                           std::shared_ptr<PieceMemory> memory, Object object, Bytes stored, Bytes copy)
    : storage_(std::move(storage)),
      cache_(std::move(cache)),
      memory_(std::move(memory)),
      object_(std::move(object)),
      stored_(std::move(stored)),
      copy_(std::move(copy)),
      is_read_(copy_ != nullptr),
      stays_(object_.access == Access::kMap) {}

CachedReader::Bytes CachedReader::copy() const {
  const std::lock_guard lock(mutex_);
  return copy_;
}

Result<CachedReader::Bytes> CachedReader::stored() const {
  {
    const std::lock_guard lock(mutex_);
    if (stored_) return stored_;
  }
  FEEDLINE_TRY(Bytes opened, storage_->open_version(object_.path, Access::kRead, object_.version));
  const std::lock_guard lock(mutex_);
  if (!stored_) stored_ = std::move(opened);
  return stored_;
}

Result<CachedReader::Bytes> CachedReader::readable() const {
  if (Bytes bytes = copy()) return bytes;
  const std::unique_lock fetching(fetching_);
  if (Bytes bytes = copy()) return bytes;
  const std::uint64_t changes = cache_->changes();
  {
    const std::lock_guard lock(mutex_);
    is_read_ = true;
    if (refused_at_ == changes && stored_) return stored_;
  }
  const Whole whole{storage_, object_.path, object_.version, *memory_, [this] { return stored(); }};
  FEEDLINE_TRY(auto held, copy_whole(*cache_, whole, NodeCache::Busy::kWait, nullptr));
  if (!held) {
    FEEDLINE_TRY(Bytes bytes, stored());
    const std::lock_guard lock(mutex_);
    refused_at_ = changes;
    return bytes;
  }
  FEEDLINE_TRY(Bytes bytes, open_copy(std::move(*held), object_.path, object_.access));
  const std::lock_guard lock(mutex_);
  copy_ = bytes;
  return bytes;
}

void CachedReader::let_go() const {
  Bytes gone;  // closed after the lock is released
  const std::lock_guard lock(mutex_);
  if (!stays_) std::swap(gone, copy_);
}

Result<ObjectStat> CachedReader::stat() const {
  if (copy()) return object_.version;
  FEEDLINE_TRY(const Bytes bytes, stored());
  return bytes->stat();
}

Result<ObjectStat> CachedReader::version() const {
  if (copy()) return object_.version;
  FEEDLINE_TRY(const Bytes bytes, stored());
  return bytes->version();
}

Result<std::size_t> CachedReader::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  const bool is_header_read = offset < kHeaderBytes && out.size() <= kHeaderBytes - offset;
  if (is_header_read) {
    std::unique_lock lock(mutex_);
    if (const Bytes first = is_read_ ? nullptr : stored_) {
      lock.unlock();
      return first->read_at(offset, out);
    }
  }
  FEEDLINE_TRY(const Bytes bytes, readable());
  return bytes->read_at(offset, out);
}

Result<std::optional<std::span<const std::byte>>> CachedReader::view(std::uint64_t offset, std::size_t count) const {
  FEEDLINE_TRY(const Bytes bytes, readable());
  return bytes->view(offset, count);
}

std::size_t CachedReader::worthwhile_bytes() const {
  std::unique_lock lock(mutex_);
  const Bytes bytes = copy_ ? copy_ : stored_;
  lock.unlock();
  return bytes ? bytes->worthwhile_bytes() : Reader::worthwhile_bytes();
}

int CachedReader::descriptor() const {
  const std::lock_guard lock(mutex_);
  stays_ = stays_ || copy_;
  return copy_ ? copy_->descriptor() : -1;
}

}  // namespace feedline::cache
