// SPDX-License-Identifier: Apache-2.0
#include "format/tar/shard.h"

#include <utility>

#include "format/class_names.h"
#include "format/plain_copy.h"
#include "format/tar/shard_scan.h"

namespace feedline::format {
namespace {

Result<ShardIndex> scan_and_keep(const ShardFile& file, const IndexStore& indexes, Shard::Scans& scans) {
  struct Turn {
    explicit Turn(Shard::Scans& all) : scans(all) { scans.acquire(); }
    ~Turn() { scans.release(); }
    Shard::Scans& scans;
  };
  const Turn turn(scans);
  FEEDLINE_TRY(const auto reader, file.storage->open_version(file.path, storage::Access::kRead, file.version));
  Findings findings;
  FEEDLINE_TRY(ShardScan scan, scan_shard(*reader, file.version, file.name, findings));
  if (const Finding* finding = findings.first_error()) return std::unexpected(to_error(*finding));
  FEEDLINE_TRY(const auto stat, reader->version());
  FEEDLINE_CHECK_OK(storage::check_version(file.name, file.version, stat));  // written to while it was scanned
  FEEDLINE_CHECK_OK(indexes.save(*file.storage, file.path, scan.index));
  return std::move(scan.index);
}

}  // namespace

Result<ShardFile> locate_tar(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                             cache::Notes* notes) {
  return locate_shard(std::move(storage), name, is_gzip, ".tar", notes);
}

Result<std::unique_ptr<Shard>> Shard::open(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                           const IndexStore& indexes, Scans& scans) {
  FEEDLINE_TRY(ShardFile file, locate_tar(std::move(storage), name, indexes.notes()));
  const auto first = std::exchange(file.reader, nullptr);
  auto index = indexes.load(*file.storage, file.path, file.version);
  if (!index) {
    FEEDLINE_TRY(index, scan_and_keep(file, indexes, scans));
  }
  std::unique_ptr<Shard> shard(new Shard(std::move(file), std::move(*index)));
  if (first && shard->file().storage->is_remote()) {
    FEEDLINE_TRY(shard->class_names_, stored_class_names(*first));
  }
  return shard;
}

Result<std::vector<std::string>> Shard::class_names() const {
  if (class_names_) return *class_names_;
  FEEDLINE_TRY(const auto opened, reader());
  auto names = stored_class_names(*opened.reader);
  close();  // it is read later or never
  return names;
}

Shard::Shard(ShardFile file, ShardIndex index) : ShardReader(std::move(file)), index_(std::move(index)) {}

}  // namespace feedline::format
