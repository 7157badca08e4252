// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/index/shard_reader.h"
#include "format/opened_format.h"

namespace feedline::format {

// A format whose samples are divided among shards and numbered consecutively. A derived class sets the protected
// members when it is opened.
class ShardedRecordFormat : public OpenedFormat {
 public:
  std::uint64_t size() const final { return ends_.back(); }
  std::vector<std::uint64_t> shard_ends() const final { return ends_; }
  std::vector<StoredShard> stored_shards() const override;
  std::string summary() const override;
  void notice_changes() const override;
  std::vector<std::unique_ptr<const UncheckedObject>> unchecked() const override;

 protected:
  struct Position {
    std::size_t shard;
    std::uint64_t sample;  // number among the shard's samples in use
  };

  using OpenedFormat::OpenedFormat;
  // Requires: index < size().
  Position position_of(std::uint64_t index) const;
  // Sets all shards, which must outlive this object.
  template <typename Shards>
  void expect(const Shards& shards) {
    for (const auto& shard : shards) all_shards_.push_back(&*shard);
    open_shards_.expect(all_shards_.size());
  }
  // Deletes the stored index of a remote shard if the error means that the shard was replaced.
  void doubt(std::size_t shard, const Error& error) const;
  virtual void forget(std::size_t /*shard*/) const {}
  // Adds the sample's location to `error`, unless the error has a location. The location comes from location_of(),
  // which by default calls where() and must not read from storage.
  std::unexpected<Error> at(std::uint64_t index, Error error) const;
  virtual Where location_of(std::uint64_t index) const { return where(index); }

  mutable OpenShards open_shards_;
  std::vector<std::uint64_t> ends_;  // cumulative number of samples, per shard
  std::uint64_t left_out_ = 0;       // samples that lack a field, with Missing::kSkip

 private:
  std::vector<const ShardReader*> all_shards_;  // empty if the derived class overrides what uses them
};

}  // namespace feedline::format
