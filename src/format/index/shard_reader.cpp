// SPDX-License-Identifier: Apache-2.0
#include "format/index/shard_reader.h"

#include <utility>

#include "format/index/plain_copy.h"

namespace feedline::format {

Result<ShardFile> locate_shard(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                               Result<bool> (*is_compressed)(const storage::Reader& reader), std::string_view extension,
                               cache::Notes* notes) {
  FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader, storage->open(name, storage::Access::kRead));
  FEEDLINE_TRY(const auto stat, reader->version());
  FEEDLINE_TRY(const bool compressed, is_compressed(*reader));
  if (!compressed) return ShardFile{name, name, std::move(storage), stat, std::move(reader)};
  FEEDLINE_TRY(std::string plain, decompressed(*storage, name, extension, notes));
  FEEDLINE_TRY(const auto plain_stat, storage::local_storage()->stat(plain));
  return ShardFile{name, std::move(plain), storage::local_storage(), plain_stat};
}

// Files are read, not mapped. Reading takes the same time per sample as mapping. Mapped pages would count as memory of
// this process, which would reach the size of the dataset after an epoch, and accessing them could raise SIGBUS.
Result<ShardReader::Opened> ShardReader::reader() const {
  const std::lock_guard lock(mutex_);
  if (changed_) return std::unexpected(*changed_);
  if (reader_) return Opened{reader_, false};
  FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader,
               file_.storage->open_version(file_.path, storage::Access::kRead, file_.version));
  reader_ = std::move(reader);
  return Opened{reader_, true};
}

void ShardReader::close() const {
  const std::lock_guard lock(mutex_);
  reader_.reset();
}

void ShardReader::stay_open() const {
  const std::lock_guard lock(mutex_);
  if (changed_) return;
  // a record that views a shard shares ownership of its reader, which must then be reference-counted
  const auto view = reader_->view(0, 0);
  if (view && !*view) lasting_.store(reader_.get(), std::memory_order_release);
}

void ShardReader::notice_change() const {
  const std::lock_guard lock(mutex_);
  if (!reader_ || changed_) return;
  const auto now = reader_->version();
  auto same = now ? storage::check_version(file_.name, file_.version, *now) : std::unexpected(now.error());
  if (same) return;
  changed_ = std::move(same).error();
  lasting_.store(nullptr, std::memory_order_release);
}

Result<std::shared_ptr<const storage::Reader>> OpenShards::reader(const ShardReader& shard) {
  // a non-owning pointer: reference counting would make all threads write to one cache line
  if (const storage::Reader* reader = shard.lasting_reader())
    return std::shared_ptr<const storage::Reader>(std::shared_ptr<const void>(), reader);
  return owned_reader(shard);
}

Result<std::shared_ptr<const storage::Reader>> OpenShards::owned_reader(const ShardReader& shard) {
  FEEDLINE_TRY(ShardReader::Opened opened, shard.reader());
  if (all_stay_) shard.stay_open();
  if (all_stay_ || !opened.now) return std::move(opened.reader);
  const ShardReader* oldest = nullptr;
  {
    const std::lock_guard lock(mutex_);
    open_.push_back(&shard);
    if (open_.size() > kMost) {
      oldest = open_.front();
      open_.pop_front();
    }
  }
  if (oldest) oldest->close();  // not under our lock: no thread ever holds two
  return std::move(opened.reader);
}

}  // namespace feedline::format
