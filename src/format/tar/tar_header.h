// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses the 512-byte header blocks of tar archives: v7, ustar, old GNU, and the records of PAX extended headers.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace feedline::format {

inline constexpr std::size_t kBlockBytes = 512;
using TarBlock = std::span<const std::byte, kBlockBytes>;

struct TarHeader {
  std::string name;
  std::string_view link;          // target of a link: a member's name, or a path; points into the block
  std::uint64_t bytes = 0;        // payload size according to the header
  char type = '0';                // '0' for regular files, also if stored as '\0'; '5' for a v7 folder ("name/")
  bool sparse_continues = false;  // type 'S': another block of the sparse map follows
};

// The reason why a block is not a valid header.
struct TarDefect {
  bool checksum = false;  // the checksum is wrong: not a header at all
  std::string text;
};

bool is_zero(TarBlock block);
std::expected<TarHeader, TarDefect> parse_header(TarBlock block);

// The relevant records of an extended header, which applies to the next member ('x') or to all following members ('g').
struct PaxRecords {
  std::optional<std::string> path;
  std::optional<std::string> link;
  std::optional<std::uint64_t> bytes;
  bool sparse = false;                     // there is a GNU.sparse.* record
  std::optional<std::string> sparse_path;  // the sparse file's real name; `path` is then a generated one
};
// Parses records and adds them to `records`. A later record replaces an earlier one with the same keyword.
std::expected<void, TarDefect> parse_pax(std::string_view data, PaxRecords& records);

}  // namespace feedline::format
