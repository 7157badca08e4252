// SPDX-License-Identifier: Apache-2.0
#pragma once

// Indexes that other programs leave beside a tar. Told apart by content, as their names are alike:
//
//     DALI, x.idx          text: "v1.2 SAMPLES", then a line for each sample: EXTENSION OFFSET BYTES NAME of each file;
//                          v1.1 has no names
//     Energon, x.tar.idx   u64 offset of each sample's first header, and of the last sample's end
//
// Only DALI's v1.2 says what a scan finds. The others say no names, and a sample's name is its key.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/finding.h"
#include "format/shard_reader.h"
#include "format/tar/shard_index.h"
#include "format/tar/tar_header.h"

namespace feedline::format {

// A file of a sample as an index has it: its name is empty in DALI's v1.1, which says the extension alone.
struct ListedMember {
  std::string extension, name;
  std::uint64_t offset = 0, bytes = 0;
};
struct ListedMembers {
  bool has_names = false;
  std::vector<ListedMember> members;
  std::vector<std::size_t> first_members;  // of each sample
};

bool is_dali_index(std::string_view text);
// Text: why it is none of a shard of so many bytes.
std::expected<ListedMembers, std::string> parse_dali_index(std::string_view text, std::uint64_t shard_bytes);
// Where samples begin, and the last one ends.
std::expected<std::vector<std::uint64_t>, std::string> parse_energon_index(std::string_view bytes,
                                                                           std::uint64_t shard_bytes);

struct ListedIndex {
  std::optional<ShardIndex> index;       // what a scan of the shard would give
  std::string path;                      // the file that says so
  std::vector<std::string> not_fitting;  // a sentence for each that does not fit to the shard
};

// Looks beside the shard for DALI's v1.2, and compares it: every block of the archive belongs to a member that it has,
// up to the end mark, no sample comes twice, and some headers, the first and the last among them, are as it says. The
// headers of what is read are compared when it is read. storage: what has the shard under its name, and the index.
ListedIndex find_listed_index(const storage::Storage& storage, const ShardFile& shard, const storage::Reader& reader);

// Every index of another program beside the shard, compared with what a scan found: those that differ are findings.
void compare_listed_indexes(const storage::Storage& storage, const ShardFile& shard, const ShardIndex& scanned,
                            Findings& findings);

// Why the block in front of a member's payload is not its header; empty: it is.
std::string differs(TarBlock block, std::string_view key, std::string_view extension, std::uint64_t bytes);

}  // namespace feedline::format
