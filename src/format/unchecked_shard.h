// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shards that were opened from cached data, and are checked for changes later.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/format.h"
#include "format/shard_reader.h"

namespace feedline::format {

// An unchecked shard. doubt: called with the error if the check fails. The shard and the name of its source must
// outlive this object.
class UncheckedShard final : public UncheckedObject {
 public:
  using Doubt = std::function<void(const Error&)>;
  UncheckedShard(const std::string& source, const ShardReader& shard, Doubt doubt)
      : source_(source), shard_(shard), doubt_(std::move(doubt)) {}

  Result<storage::Piece> piece() const override;
  Result<void> note(Result<void> came) const override;

 private:
  const std::string& source_;
  const ShardReader& shard_;
  const Doubt doubt_;
};

// Those of `shards` that have not been checked yet. doubt: called with a shard and the error if its check fails. The
// shards and `source` must outlive the result.
template <typename Shard>
std::vector<std::unique_ptr<const UncheckedObject>> unchecked_shards(
    const std::string& source, const std::vector<std::unique_ptr<Shard>>& shards,
    const std::function<void(const Shard&, const Error&)>& doubt) {
  std::vector<std::unique_ptr<const UncheckedObject>> all;
  for (const auto& shard : shards)
    if (!shard->is_checked())
      all.push_back(std::make_unique<const UncheckedShard>(
          source, *shard, [doubt, &shard = *shard](const Error& error) { doubt(shard, error); }));
  return all;
}

}  // namespace feedline::format
