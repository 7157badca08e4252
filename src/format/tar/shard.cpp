// SPDX-License-Identifier: Apache-2.0
#include "format/tar/shard.h"

#include <utility>

#include "format/class_names.h"
#include "format/tar/gzip_cache.h"
#include "format/tar/shard_scan.h"

namespace feedline::format {
namespace {

// The shard by its kept index alone; nullopt: there is none, or what is known of the object contradicts it.
std::optional<ShardIndex> index_at_hand(const storage::Storage& storage, const std::string& name,
                                        const Shard::Opening& opening) {
  if (opening.asks || !storage.holds_versions()) return {};
  auto index = opening.indexes.load_unchecked(storage, name);
  if (index && !storage.check_known(name, index->version())) return {};
  return index;
}

// first: a reader that has the file's beginning, where there is one.
Result<ShardIndex> scan_and_keep(const ShardFile& file, const storage::Reader* first, const Shard::Opening& opening) {
  struct Turn {
    explicit Turn(Shard::Scans& all) : scans(all) { scans.acquire(); }
    ~Turn() { scans.release(); }
    Shard::Scans& scans;
  };
  const Turn turn(opening.scans);
  FEEDLINE_TRY(const auto reader, file.storage->open_version(file.path, storage::Access::kRead, file.version));
  FEEDLINE_TRY(auto class_names, stored_class_names(first ? *first : *reader));
  Findings findings;
  FEEDLINE_TRY(ShardScan scan, scan_shard(*reader, file.version, file.name, findings, std::move(class_names)));
  if (const Finding* finding = findings.first_error()) return std::unexpected(to_error(*finding));
  FEEDLINE_TRY(const auto stat, reader->version());
  FEEDLINE_CHECK_OK(storage::check_version(file.name, file.version, stat));  // written to while it was scanned
  FEEDLINE_CHECK_OK(opening.indexes.save(*file.storage, file.path, scan.index));
  return std::move(scan.index);
}

}  // namespace

Result<ShardFile> locate_shard(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                               cache::Notes* notes) {
  FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader, storage->open(name, storage::Access::kRead));
  FEEDLINE_TRY(const auto stat, reader->version());
  FEEDLINE_TRY(const bool gzip, is_gzip(*reader));
  if (!gzip) return ShardFile{name, name, std::move(storage), stat, std::move(reader)};
  FEEDLINE_TRY(std::string plain, decompressed(*storage, name, notes));
  FEEDLINE_TRY(const auto plain_stat, storage::local_storage()->stat(plain));
  return ShardFile{name, std::move(plain), storage::local_storage(), plain_stat};
}

Result<std::unique_ptr<Shard>> Shard::open(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                           const Opening& opening) {
  if (auto kept = index_at_hand(*storage, name, opening)) {
    const storage::Version version = kept->version();
    return std::unique_ptr<Shard>(new Shard({name, name, std::move(storage), version}, std::move(*kept), false));
  }
  FEEDLINE_TRY(ShardFile file, locate_shard(std::move(storage), name, opening.indexes.notes()));
  const auto first = std::exchange(file.reader, nullptr);
  auto index = opening.indexes.load(*file.storage, file.path, file.version);
  if (!index) {
    FEEDLINE_TRY(index, scan_and_keep(file, first.get(), opening));
  }
  return std::unique_ptr<Shard>(new Shard(std::move(file), std::move(*index), true));
}

Shard::Shard(ShardFile file, ShardIndex index, bool is_checked)
    : file_(std::move(file)), index_(std::move(index)), is_checked_(is_checked) {}

// Read, not mapped: the same time per sample, but mapped pages count as this process's memory, which would seem to hold
// the whole dataset after an epoch; and nothing can end in SIGBUS.
Result<Shard::Opened> Shard::reader() const {
  const std::lock_guard lock(mutex_);
  if (changed_) return std::unexpected(*changed_);
  if (reader_) return Opened{reader_, false};
  FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader,
               file_.storage->open_version(file_.path, storage::Access::kRead, file_.version));
  reader_ = std::move(reader);
  return Opened{reader_, true};
}

void Shard::close() const {
  const std::lock_guard lock(mutex_);
  reader_.reset();
}

void Shard::stay_open() const {
  const std::lock_guard lock(mutex_);
  if (!changed_) lasting_.store(reader_.get(), std::memory_order_release);
}

void Shard::notice_change() const {
  const std::lock_guard lock(mutex_);
  if (!reader_ || changed_) return;
  const auto now = reader_->version();
  auto same = now ? storage::check_version(file_.name, file_.version, *now) : std::unexpected(now.error());
  if (same) return;
  changed_ = std::move(same).error();
  lasting_.store(nullptr, std::memory_order_release);
}

Result<std::shared_ptr<const storage::Reader>> OpenShards::reader(const Shard& shard) {
  // a pointer that owns nothing: counting its holders would have all threads write to one place
  if (const storage::Reader* reader = shard.lasting_reader())
    return std::shared_ptr<const storage::Reader>(std::shared_ptr<const void>(), reader);
  FEEDLINE_TRY(Shard::Opened opened, shard.reader());
  if (all_stay_) shard.stay_open();
  if (all_stay_ || !opened.now) return std::move(opened.reader);
  const Shard* oldest = nullptr;
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
