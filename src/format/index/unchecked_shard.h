// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shards that were opened with stored indexes and are checked for changes later.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/format.h"
#include "format/index/shard_reader.h"

namespace feedline::format {

// An unchecked shard. `doubt` is called with the error if the check fails. The shard and its source's name must outlive
// this object.
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

}  // namespace feedline::format
