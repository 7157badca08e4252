// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/shards/sharded_format.h"
#include "format/tar/field_choice.h"
#include "format/tar/shard.h"
#include "format/tar/tar_header.h"

namespace feedline::format {

// One or several WebDataset shards, which are tar files, possibly compressed with gzip. Samples are numbered
// consecutively across shards.
class TarFormat final : public ShardedRecordFormat {
 public:
  // Requires: options.storage is set, and there is at least one shard.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source,
                                                          const std::vector<std::string>& shards,
                                                          const OpenOptions& options);

  std::string_view name() const override { return "tar"; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  bool find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                  std::string& room) const override;
  Result<bool> read_field(std::uint64_t index, std::size_t field, memory::Record& record) const override;
  Result<std::optional<storage::Piece>> locate_image(std::uint64_t index, std::size_t field) const override;
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
  struct Location {
    const Shard* shard;
    std::uint64_t sample;  // sample within the shard
  };

  TarFormat(std::string source, OpenOptions options, std::vector<std::unique_ptr<Shard>> shards,
            const std::vector<FieldChoice>& fields, std::vector<std::string> classes);
  Location find_sample(std::uint64_t index) const;
  void take_samples();
  std::uint64_t compute_fingerprint(const std::vector<FieldChoice>& fields) const;
  // Finds the member of each field, or sets kAbsent. Fails if a required member is missing or empty.
  Result<ShardIndex::Member> find_member(const Location& location, std::size_t field) const;
  Result<void> find_members(const Location& location, std::span<ShardIndex::Member> members) const;
  // These functions check that members are at the indexed positions if the index is from another program. front() is
  // the size of the header before each member.
  static std::uint64_t front(const Location& location) { return location.shard->listed_by().empty() ? 0 : kBlockBytes; }
  Result<void> check_header(const Location& location, const ShardIndex::Member& member, TarBlock block) const;
  Result<void> check_headers(const Location& location, std::span<const ShardIndex::Member> members,
                             const storage::Reader& reader) const;
  Result<void> read_sample(const Location& location, memory::Record& record) const;
  Result<SampleFiles> read_files(const Location& location) const;
  void forget(std::size_t shard) const override;
  Result<void> accept_members(std::span<const ShardIndex::Member> members,
                              std::span<const std::span<const std::byte>> payloads, memory::Record& record) const;
  Result<void> accept_member(std::size_t field, const ShardIndex::Member& member, std::span<const std::byte> payload,
                             memory::Record::Field& value) const;

  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::vector<std::uint32_t>> whole_;  // per shard: the samples that lack no field; empty if all are used
  std::vector<UnopenedColumn> unopened_;           // by extension
};

}  // namespace feedline::format
