// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/plugin/plugin_shard.h"
#include "format/shards/sharded_format.h"

namespace feedline::format {

// Files of a plugin's format. Samples are numbered consecutively across files. Owns the opened files; the format's
// functions are the plugin's, which is never unloaded. Immutable after open() and thread-safe, as the plugin's
// functions must be.
class PluginRecordFormat final : public ShardedRecordFormat {
 public:
  // Requires: options.storage is set, and there is at least one file.
  static Result<std::shared_ptr<const RecordFormat>> open(const feedline_format_v1& format, const std::string& source,
                                                          const std::vector<std::string>& files,
                                                          const OpenOptions& options);

  std::string_view name() const override { return format_.name; }
  std::string summary() const override;
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Where where(std::uint64_t index) const override;

 private:
  using Shards = std::vector<std::unique_ptr<PluginShard>>;

  PluginRecordFormat(const feedline_format_v1& format, std::string source, OpenOptions options, Shards shards);
  Result<void> choose_fields();
  std::uint64_t compute_fingerprint() const;
  Result<void> accept_stored(const Position& position, std::span<const std::byte> stored, memory::Record& record) const;

  const feedline_format_v1& format_;  // never destroyed
  Shards shards_;
  std::vector<std::string> stems_;    // prefixes of keys, one per file
  std::vector<std::size_t> columns_;  // of the format's fields, one per field
};

}  // namespace feedline::format
