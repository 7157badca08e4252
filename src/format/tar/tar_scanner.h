// SPDX-License-Identifier: Apache-2.0
#pragma once

// Walks the headers of a tar archive and skips the payloads. Reports any archive without an end marker as damaged, no
// matter where it was truncated.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/shards/finding.h"
#include "format/tar/tar_header.h"
#include "storage/reader.h"

namespace feedline::format {

struct TarMember {
  std::string name;                      // with long names and prefixes resolved
  std::optional<std::string> link = {};  // target of a link; not set for regular files
  char type = '0';                       // '0' and '7' are regular files
  bool sparse = false;                   // the payload omits holes, so it is not the file's content
  std::uint64_t offset = 0;              // offset of the payload
  std::uint64_t bytes = 0;               // size of the payload, which is inside the archive
  bool is_hard_link() const { return type == '1'; }
  bool is_regular() const { return type == '0' || type == '7' || type == 'S'; }
};

// Not thread-safe.
class TarScanner {
 public:
  // Requires: `reader` and `findings` outlive the scanner. `shard` is the archive's name in findings.
  TarScanner(const storage::Reader& reader, std::uint64_t archive_bytes, std::string shard, Findings& findings);

  // Returns the next member. Returns nullopt at the end, or after damage that cannot be skipped, which is the last
  // finding. Fails if the storage fails.
  Result<std::optional<TarMember>> next();
  // Returns the payload of a member that next() has just returned, or nullopt if it is longer than a block. This costs
  // no request beyond those for the headers. The result is valid until the next call.
  Result<std::optional<std::span<const std::byte>>> short_payload(const TarMember& member);

 private:
  enum class Step : std::uint8_t { kMember, kGoOn, kStop };

  Result<Step> read_one(TarMember& member);
  Result<Step> read_extension(const TarHeader& header);
  Result<Step> place_member(TarHeader header, TarMember& member);
  Result<Step> read_end();
  Result<std::optional<TarBlock>> block_at(std::uint64_t offset);
  Step stop(std::string_view code, std::string text);
  Step truncated(const std::string& name);

  const storage::Reader& reader_;
  const std::uint64_t archive_bytes_;
  const std::string shard_;
  const std::size_t window_bytes_;
  Findings& findings_;
  std::uint64_t position_ = 0;     // offset of the next header
  std::uint64_t header_ = 0;       // offset of the current header
  PaxRecords global_, next_;       // 'g' applies to all following members, 'x' and 'L' to the next one
  std::vector<std::byte> window_;  // begins with the archive's bytes at window_begin_
  std::uint64_t window_begin_ = 0;
  std::size_t window_filled_ = 0;  // valid bytes in window_
};

}  // namespace feedline::format
