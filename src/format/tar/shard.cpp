// SPDX-License-Identifier: Apache-2.0
#include "format/tar/shard.h"

#include <utility>

#include "format/index/plain_copy.h"
#include "format/tar/class_names.h"
#include "format/tar/listed_members.h"
#include "format/tar/shard_scan.h"

namespace feedline::format {
namespace {

struct Indexed {
  ShardIndex index;
  std::string listed_by = {};
};

// Returns the matching index from another program, if there is one. `storage` contains the shard under its name.
std::optional<Indexed> other_index(const storage::Storage& storage, const ShardFile& file,
                                   const storage::Reader& reader, const Shard::Opening& opening) {
  ListedIndex listed = find_listed_index(storage, file, reader);
  for (const std::string& why : listed.not_fitting)
    if (opening.indexes.notes() != nullptr) opening.indexes.notes()->add(why);
  if (!listed.index) return {};
  return Indexed{std::move(*listed.index), std::move(listed.path)};
}

// Builds the index of a shard. `first` is a reader of the beginning of the file, or nullptr.
Result<Indexed> make_index(const storage::Storage& storage, const ShardFile& file, const storage::Reader* first,
                           const Shard::Opening& opening) {
  struct Turn {
    explicit Turn(Shard::Scans& all) : scans(all) { scans.acquire(); }
    ~Turn() { scans.release(); }
    Shard::Scans& scans;
  };
  const Turn turn(opening.scans);
  FEEDLINE_TRY(const auto reader, file.storage->open_version(file.path, storage::Access::kRead, file.version));
  if (auto indexed = other_index(storage, file, *reader, opening)) return std::move(*indexed);
  FEEDLINE_TRY(auto class_names, stored_class_names(first ? *first : *reader));
  Findings findings;
  FEEDLINE_TRY(ShardScan scan, scan_shard(*reader, file.version, file.name, findings, std::move(class_names)));
  if (const Finding* finding = findings.first_error()) return std::unexpected(to_error(*finding));
  FEEDLINE_TRY(const auto stat, reader->version());
  FEEDLINE_CHECK_OK(storage::check_version(file.name, file.version, stat));  // the file was changed during the scan
  FEEDLINE_CHECK_OK(opening.indexes.save(*file.storage, file.path, scan.index));
  return Indexed{std::move(scan.index)};
}

}  // namespace

Result<ShardFile> locate_tar(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                             cache::Notes* notes) {
  return locate_shard(std::move(storage), name, is_gzip, ".tar", notes);
}

Result<std::unique_ptr<Shard>> Shard::open(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                           const Opening& opening) {
  if (auto stored = opening.checks_version ? std::nullopt : opening.indexes.at_hand(*storage, name)) {
    const storage::Version version = stored->version();
    return std::unique_ptr<Shard>(new Shard({name, name, std::move(storage), version}, std::move(*stored), false));
  }
  FEEDLINE_TRY(ShardFile file, locate_tar(storage, name, opening.indexes.notes()));
  const auto first = std::exchange(file.reader, nullptr);
  if (auto stored = opening.indexes.load(*file.storage, file.path, file.version))
    return std::unique_ptr<Shard>(new Shard(std::move(file), std::move(*stored), true));
  FEEDLINE_TRY(Indexed made, make_index(*storage, file, first.get(), opening));
  return std::unique_ptr<Shard>(new Shard(std::move(file), std::move(made.index), true, std::move(made.listed_by)));
}

Shard::Shard(ShardFile file, ShardIndex index, bool is_checked, std::string listed_by)
    : ShardReader(std::move(file), is_checked), index_(std::move(index)), listed_by_(std::move(listed_by)) {}

}  // namespace feedline::format
