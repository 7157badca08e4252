// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/plugin/plugin.h"
#include "format/index/shard_reader.h"
#include "memory/record.h"

namespace feedline::format {

// A file that a plugin has opened. Owns the plugin's handle, which the destructor closes. `format` must exist as long
// as this object. Immutable after open() and thread-safe, as the plugin's functions must be.
class PluginShard final : public ShardReader {
 public:
  static Result<std::unique_ptr<PluginShard>> open(const feedline_format_v1& format,
                                                   std::shared_ptr<const storage::Storage> storage,
                                                   const std::string& name);
  ~PluginShard();
  PluginShard(const PluginShard&) = delete;
  PluginShard& operator=(const PluginShard&) = delete;

  std::uint64_t samples() const { return samples_; }
  struct Range {
    std::uint64_t offset = 0, bytes = 0;
  };
  // kData: the range is not inside the file.
  Result<Range> locate(std::uint64_t sample) const;
  // Returns the values of all fields of the format, which point into `stored` or record.more, except those of the kind
  // "value", which are anywhere and have 8 bytes. `stored` has the located range. kData: a value is elsewhere.
  Result<std::vector<feedline_bytes>> values_of(std::uint64_t sample, std::span<const std::byte> stored,
                                                memory::Record& record) const;
  // Reads the located range, or views it if the file is mapped.
  Result<std::span<const std::byte>> read(const std::shared_ptr<const storage::Reader>& reader, std::uint64_t sample,
                                          memory::Record& record) const;

 private:
  PluginShard(const feedline_format_v1& format, ShardFile file, void* shard, std::uint64_t samples)
      : ShardReader(std::move(file)), format_(format), shard_(shard), samples_(samples) {}

  const feedline_format_v1& format_;
  void* const shard_;
  const std::uint64_t samples_;
};

// Returns the name of the format for errors.
std::string described(const feedline_format_v1& format);

}  // namespace feedline::format
