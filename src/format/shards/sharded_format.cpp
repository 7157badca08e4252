// SPDX-License-Identifier: Apache-2.0
#include "format/shards/sharded_format.h"

#include <algorithm>

#include "base/check.h"
#include "format/index/unchecked_shard.h"
#include "storage/version.h"

namespace feedline::format {

std::vector<StoredShard> ShardedRecordFormat::stored_shards() const {
  std::vector<StoredShard> stored;
  for (const ShardReader* shard : all_shards_) stored.push_back(shard->stored_in(*options_.storage));
  return stored;
}

std::string ShardedRecordFormat::summary() const {
  if (left_out_ == 0) return {};
  return std::to_string(left_out_) + " samples were omitted because they lack a field";
}

void ShardedRecordFormat::notice_changes() const {
  for (const ShardReader* shard : all_shards_) shard->notice_change();
}

std::vector<std::unique_ptr<const UncheckedObject>> ShardedRecordFormat::unchecked() const {
  std::vector<std::unique_ptr<const UncheckedObject>> all;
  for (std::size_t i = 0; i < all_shards_.size(); ++i)
    if (!all_shards_[i]->is_checked())
      all.push_back(std::make_unique<const UncheckedShard>(source_, *all_shards_[i],
                                                           [this, i](const Error& error) { doubt(i, error); }));
  return all;
}

ShardedRecordFormat::Position ShardedRecordFormat::position_of(std::uint64_t index) const {
  FEEDLINE_CHECK(index < size());
  const auto shard = static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  return {shard, index - (shard == 0 ? 0 : ends_[shard - 1])};
}

void ShardedRecordFormat::doubt(std::size_t shard, const Error& error) const {
  if (options_.storage->is_remote() && storage::is_of_change(error)) forget(shard);
}

std::unexpected<Error> ShardedRecordFormat::at(std::uint64_t index, Error error) const {
  doubt(position_of(index).shard, error);
  return failed_at(location_of(index), std::move(error));
}

}  // namespace feedline::format
