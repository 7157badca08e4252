// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/lmdb/lmdb_samples.h"
#include "format/lmdb/lmdb_shard.h"
#include "format/lmdb/value_reader.h"
#include "format/shards/sharded_format.h"

namespace feedline::format {

// One or several LMDB databases, whose samples are numbered consecutively.
class LmdbFormat final : public ShardedRecordFormat {
 public:
  // Requires: options.storage is set, and there is at least one database.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source,
                                                          const std::vector<std::string>& databases,
                                                          const OpenOptions& options);

  std::string_view name() const override { return "lmdb"; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  std::size_t most_pieces() const override { return reader_.layout().sources.size(); }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::vector<UnopenedColumn> unopened() const override;
  Where where(std::uint64_t index) const override;
  Where where_field(std::uint64_t index, std::size_t field) const override;
  void notice_changes() const override;

 private:
  using Values = std::span<std::optional<std::span<const std::byte>>>;
  struct Database {
    std::unique_ptr<LmdbShard> shard;
    LmdbSamples samples;
  };
  struct Location {
    const LmdbShard* shard;
    const LmdbSamples* samples;
    std::uint64_t sample;  // number within the database
  };

  LmdbFormat(std::string source, OpenOptions options, std::vector<Database> databases, LmdbLayout layout);
  std::uint64_t compute_fingerprint() const;
  Location find_sample(std::uint64_t index) const;
  Where where_source(std::uint64_t index, std::size_t source) const;
  Result<void> fetch(const Location& location, memory::Record& record, Values values) const;
  Result<void> take_values(std::span<const std::optional<std::span<const std::byte>>> values,
                           memory::Record& record) const;

  std::vector<Database> databases_;
  ValueReader reader_;
};

// Returns the sample's name or number from its first key, for messages.
std::string sample_key(const LmdbLayout& layout, const LmdbIndex& index, const LmdbSamples& samples,
                       std::uint64_t sample);
// Returns the key list stored next to a database in a folder, or nullopt if there is none.
Result<std::optional<std::string>> read_key_list(const storage::Storage& storage, const ShardFile& file);
// Returns a function that reads entries, to determine the types of their values.
ReadEntry entries_of(const LmdbShard& shard, std::shared_ptr<const storage::Reader> reader, memory::Record& record);
// Fails with kData if the database stores a different number of samples in "num-samples".
Result<void> check_count(const LmdbLayout& layout, const LmdbIndex& index, const LmdbSamples& samples,
                         const ReadEntry& read);

}  // namespace feedline::format
