// SPDX-License-Identifier: Apache-2.0
#pragma once

// The 512-byte blocks of tar archives: v7, ustar, old GNU, and the records of PAX extended headers.

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
  std::string link;               // of links: the name of the member, or the path, that they stand for
  std::uint64_t bytes = 0;        // of payload, as the header says
  char type = '0';                // '\0' for regular files comes as '0'; a v7 folder ("name/") as '5'
  bool sparse_continues = false;  // type 'S': a block with more of the sparse map follows
};

// Why a block is no header; texts for people.
struct TarDefect {
  bool checksum = false;  // the sum is wrong: not a header at all
  std::string text;
};

bool is_zero(TarBlock block);
std::expected<TarHeader, TarDefect> parse_header(TarBlock block);

// What an extended header ('x': of the next member, 'g': of all that follow) says that matters here.
struct PaxRecords {
  std::optional<std::string> path;
  std::optional<std::string> link;
  std::optional<std::uint64_t> bytes;
  bool sparse = false;                     // any GNU.sparse.* record
  std::optional<std::string> sparse_path;  // the sparse file's own name; `path` is then a made-up one
};
// Adds to `records`; of two equal keywords the later counts.
std::expected<void, TarDefect> parse_pax(std::string_view data, PaxRecords& records);

}  // namespace feedline::format
