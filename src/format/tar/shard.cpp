// SPDX-License-Identifier: Apache-2.0
#include "format/tar/shard.h"

#include <utility>

#include "format/class_names.h"
#include "format/plain_copy.h"
#include "format/tar/shard_scan.h"

namespace feedline::format {
namespace {

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

Result<ShardFile> locate_tar(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                             cache::Notes* notes) {
  return locate_shard(std::move(storage), name, is_gzip, ".tar", notes);
}

Result<std::unique_ptr<Shard>> Shard::open(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                           const Opening& opening) {
  if (auto kept = opening.asks ? std::nullopt : opening.indexes.at_hand(*storage, name)) {
    const storage::Version version = kept->version();
    return std::unique_ptr<Shard>(new Shard({name, name, std::move(storage), version}, std::move(*kept), false));
  }
  FEEDLINE_TRY(ShardFile file, locate_tar(std::move(storage), name, opening.indexes.notes()));
  const auto first = std::exchange(file.reader, nullptr);
  auto index = opening.indexes.load(*file.storage, file.path, file.version);
  if (!index) {
    FEEDLINE_TRY(index, scan_and_keep(file, first.get(), opening));
  }
  return std::unique_ptr<Shard>(new Shard(std::move(file), std::move(*index), true));
}

Shard::Shard(ShardFile file, ShardIndex index, bool is_checked)
    : ShardReader(std::move(file), is_checked), index_(std::move(index)) {}

}  // namespace feedline::format
