// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/format.h"
#include "format/shard_reader.h"

namespace feedline::format {

// A format whose samples are divided among shards and numbered consecutively. A derived class sets the protected
// members when it is opened.
class ShardedRecordFormat : public RecordFormat {
 public:
  std::uint64_t size() const final { return ends_.back(); }
  const std::vector<FieldDescription>& fields() const final { return fields_; }
  const std::vector<std::string>& classes() const final { return classes_; }
  // Reads the sample, for formats that do not store the sizes of its files.
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const override;
  std::shared_ptr<const storage::Storage> storage() const final { return options_.storage; }
  std::vector<std::uint64_t> shard_ends() const final { return ends_; }
  std::vector<StoredShard> stored_shards() const override;
  std::string summary() const override;
  void notice_changes() const override;
  std::vector<std::unique_ptr<const UncheckedObject>> unchecked() const override;
  std::uint64_t fingerprint() const final { return fingerprint_; }
  Result<Inspection> inspect() const final { return format::inspect(source_, options_); }

 protected:
  struct Position {
    std::size_t shard;
    std::uint64_t sample;  // number among the shard's samples in use
  };

  ShardedRecordFormat(std::string source, OpenOptions options)
      : source_(std::move(source)), options_(std::move(options)) {}
  // Requires: index < size().
  Position position_of(std::uint64_t index) const;
  // Announces all shards, which must outlive this object.
  template <typename Shards>
  void expect(const Shards& shards) {
    for (const auto& shard : shards) all_shards_.push_back(&*shard);
    open_shards_.expect(all_shards_.size());
  }
  // If the error means that a remote shard was replaced, deletes the cached data about it.
  void doubt(std::size_t shard, const Error& error) const;
  virtual void forget(std::size_t /*shard*/) const {}
  // Adds the sample's position to `error`, unless the error has its own. location_of() is where(), by default; it must
  // not read.
  std::unexpected<Error> at(std::uint64_t index, Error error) const;
  virtual Where location_of(std::uint64_t index) const { return where(index); }

  const std::string source_;
  const OpenOptions options_;
  mutable OpenShards open_shards_;
  std::vector<std::uint64_t> ends_;  // cumulative number of samples, per shard
  std::uint64_t left_out_ = 0;       // samples that lack a field, with Missing::kSkip
  std::vector<FieldDescription> fields_;
  std::vector<std::string> classes_;  // empty if labels have no names
  std::uint64_t fingerprint_ = 0;

 private:
  std::vector<const ShardReader*> all_shards_;  // empty if the derived class overrides what uses them
};

}  // namespace feedline::format
