// SPDX-License-Identifier: Apache-2.0
#pragma once

// Walks the headers of a tar archive; payloads are skipped, not read. Fails closed: an archive that does not end
// with its end mark is damaged, wherever it was cut.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/finding.h"
#include "format/tar/tar_header.h"
#include "storage/reader.h"

namespace feedline::format {

struct TarMember {
  std::string name;                      // long names and prefixes resolved
  std::optional<std::string> link = {};  // target of a link, like `name`; ordinary files do not store it
  char type = '0';                       // '0' and '7' are regular files
  bool sparse = false;                   // holes were left out of the payload: its bytes are not the file's
  std::uint64_t offset = 0;              // of the payload
  std::uint64_t bytes = 0;               // of the payload; all of it lies inside the archive
  bool is_hard_link() const { return type == '1'; }
  bool is_regular() const { return type == '0' || type == '7' || type == 'S'; }
};

// Not for several threads at once.
class TarScanner {
 public:
  // Requires: reader and findings outlive the scanner. `shard` is what findings call the archive.
  TarScanner(const storage::Reader& reader, std::uint64_t archive_bytes, std::string shard, Findings& findings);

  // The next member; nullopt: the end, or damage that nothing can be read behind, which is then the last of the
  // findings. An error is one of the storage.
  Result<std::optional<TarMember>> next();

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
  std::uint64_t position_ = 0;     // of the next header
  std::uint64_t header_ = 0;       // of the header being read
  PaxRecords global_, next_;       // 'g': of all members that follow; 'x' and 'L': of the next one
  std::vector<std::byte> window_;  // begins with bytes of the archive from window_begin_
  std::uint64_t window_begin_ = 0;
  std::size_t window_filled_ = 0;  // how many
};

}  // namespace feedline::format
