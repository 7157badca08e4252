// SPDX-License-Identifier: Apache-2.0
#include "feedline/stored_source.h"

#include <utility>

#include "base/guarded.h"
#include "format/sources/packed_folder.h"
#include "format/sources/source_list.h"
#include "storage/storage.h"
#include "storage/version.h"

namespace feedline {

struct StoredObject::Impl {
  std::shared_ptr<const storage::Storage> storage;  // the reader may use it
  std::unique_ptr<storage::Reader> reader;
  storage::Version version;
};

StoredObject::StoredObject(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoredObject::StoredObject(StoredObject&&) noexcept = default;
StoredObject& StoredObject::operator=(StoredObject&&) noexcept = default;
StoredObject::~StoredObject() = default;

std::uint64_t StoredObject::bytes() const { return impl_->version.bytes; }
std::uint64_t StoredObject::stamp() const { return impl_->version.stamp(); }

Result<std::size_t> StoredObject::read(std::uint64_t offset, std::span<std::byte> out) const {
  return base::guarded([&] { return impl_->reader->read_at(offset, out); });
}

Result<void> StoredObject::check_unchanged() const {
  return base::guarded([&]() -> Result<void> {
    FEEDLINE_TRY(const auto now, impl_->reader->stat());
    return storage::check_version(impl_->reader->name(), impl_->version, now);
  });
}

struct StoredSource::Impl {
  std::shared_ptr<const storage::Storage> storage;
  std::vector<std::string> names;
};

StoredSource::StoredSource(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<StoredSource> StoredSource::open(const std::string& source) {
  return base::guarded([&]() -> Result<StoredSource> {
    FEEDLINE_TRY(auto located, format::locate(source));
    auto impl = std::make_shared<Impl>();
    impl->storage = std::move(located.storage);
    FEEDLINE_TRY(impl->names, format::names_of_list(located.source, *impl->storage, "shard", true));
    return StoredSource(std::move(impl));
  });
}

const std::vector<std::string>& StoredSource::names() const { return impl_->names; }

Result<StoredSource> StoredSource::shards() const {
  return base::guarded([&]() -> Result<StoredSource> {
    auto impl = std::make_shared<Impl>(*impl_);
    FEEDLINE_TRY(impl->names, format::with_packed_tars(impl_->names, *impl_->storage));
    return StoredSource(std::move(impl));
  });
}

bool StoredSource::is_remote() const { return impl_->storage->is_remote(); }

Result<bool> StoredSource::is_folder(const std::string& name) const {
  return base::guarded([&] { return impl_->storage->is_directory(name); });
}

Result<StoredObject> StoredSource::object(const std::string& name) const {
  return base::guarded([&]() -> Result<StoredObject> {
    auto impl = std::make_unique<StoredObject::Impl>();
    impl->storage = impl_->storage;
    FEEDLINE_TRY(impl->reader, impl->storage->open(name, storage::Access::kRead));
    FEEDLINE_TRY(impl->version, impl->reader->version());
    return StoredObject(std::move(impl));
  });
}

}  // namespace feedline
