// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/sharded_format.h"
#include "format/tar/field_choice.h"
#include "format/tar/shard.h"
#include "format/tar/tar_header.h"

namespace feedline::format {

// One or several WebDataset shards: tar files, plain or compressed by gzip. Sample numbers are consecutive across
// shards.
class TarFormat final : public ShardedRecordFormat {
 public:
  // Requires: options.storage, and at least one shard.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source,
                                                          const std::vector<std::string>& shards,
                                                          const OpenOptions& options);

  std::string_view name() const override { return "tar"; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const override;
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::vector<UnopenedColumn> unopened() const override { return unopened_; }
  std::string summary() const override;
  Where where(std::uint64_t index) const override;
  Where where_field(std::uint64_t index, std::size_t field) const override;

 private:
  void note_unopened(const std::vector<FieldChoice>& fields);
  struct Place {
    const Shard* shard;
    std::uint64_t sample;  // sample within the shard
  };

  TarFormat(std::string source, OpenOptions options, std::vector<std::unique_ptr<Shard>> shards,
            const std::vector<FieldChoice>& fields, std::vector<std::string> classes);
  Place place_of(std::uint64_t index) const;
  void take_samples();
  std::uint64_t compute_fingerprint(const std::vector<FieldChoice>& fields) const;
  // Finds the member of each field, or sets kAbsent. Returns an error if a required member is missing or empty.
  Result<void> find_members(const Place& place, std::span<ShardIndex::Member> members) const;
  // For a shard indexed by another program, checks that the members are at the indexed positions. front(): size of the
  // header before each member.
  static std::uint64_t front(const Place& place) { return place.shard->listed_by().empty() ? 0 : kBlockBytes; }
  Result<void> check_header(const Place& place, const ShardIndex::Member& member, TarBlock block) const;
  Result<void> check_headers(const Place& place, std::span<const ShardIndex::Member> members,
                             const storage::Reader& reader) const;
  Result<void> read_sample(const Place& place, memory::Record& record) const;
  Result<SampleFiles> read_files(const Place& place) const;
  void forget(std::size_t shard) const override;
  Result<void> accept_members(std::span<const ShardIndex::Member> members,
                              std::span<const std::span<const std::byte>> payloads, memory::Record& record) const;

  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::vector<std::uint32_t>> whole_;  // per shard: the samples that lack no field; empty if all are used
  std::vector<UnopenedColumn> unopened_;           // by extension
};

}  // namespace feedline::format
