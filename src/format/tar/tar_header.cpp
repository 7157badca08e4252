// SPDX-License-Identifier: Apache-2.0
#include "format/tar/tar_header.h"

#include <algorithm>
#include <charconv>

namespace feedline::format {
namespace {

// A header block (POSIX ustar; v7 ends after linkname, old GNU has "ustar  \0" and other fields after devminor):
//
//     0      100    108   116   124    136     148   156    157        257     263   265     297     329        337        345      500  512
//     | name | mode | uid | gid | size | mtime | sum | type | linkname | magic | ver | uname | gname | devmajor | devminor | prefix | -    |
//
// Old GNU sparse members ('S') have a flag at 482, which is set if another block of the sparse map follows.
struct Field {
  std::size_t offset, bytes;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kSum{148, 8}, kLink{157, 100}, kPrefix{345, 155};
constexpr Field kMagic{257, 6};
constexpr std::size_t kTypeOffset = 156, kSparseContinuesOffset = 482;

std::string_view raw(TarBlock block, Field field) {
  return {reinterpret_cast<const char*>(block.data()) + field.offset, field.bytes};
}

std::string_view text(TarBlock block, Field field) {
  const std::string_view all = raw(block, field);
  return all.substr(0, all.find('\0'));
}

// Parses octal digits between optional spaces, up to a NUL. If the first bit is set, parses a big-endian binary number
// whose next bit is the sign, which GNU tar uses for sizes above 8 GiB.
std::optional<std::uint64_t> number(std::string_view field) {
  const auto first = static_cast<unsigned char>(field[0]);
  std::uint64_t value = 0;
  if (first & 0x80) {
    if (first & 0x40) return {};  // negative sizes and checksums are invalid
    value = first & 0x3f;
    for (const char c : field.substr(1)) {
      if (value >> 55) return {};  // the result must stay below 2^63
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  field = field.substr(0, field.find('\0'));
  while (field.starts_with(' ')) field.remove_prefix(1);
  while (field.ends_with(' ')) field.remove_suffix(1);
  for (const char c : field) {
    if (c < '0' || c > '7') return {};
    value = value << 3 | static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

// Compares the checksum: the sum of all bytes, with the checksum field replaced by spaces. Some old writers summed the
// bytes as signed numbers.
bool sum_matches(TarBlock block) {
  const auto stored = number(raw(block, kSum));
  if (!stored) return false;
  std::int64_t unsigned_sum = 0, signed_sum = 0;
  for (std::size_t i = 0; i < kBlockBytes; ++i) {
    const bool own = i >= kSum.offset && i < kSum.offset + kSum.bytes;
    const auto byte = own ? static_cast<unsigned char>(' ') : static_cast<unsigned char>(block[i]);
    unsigned_sum += byte;
    signed_sum += static_cast<signed char>(byte);
  }
  const auto sum = static_cast<std::int64_t>(*stored);
  return sum == unsigned_sum || sum == signed_sum;
}

std::optional<std::uint64_t> decimal(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value >> 63) return {};
  return value;
}

std::unexpected<TarDefect> defect(std::string text) { return std::unexpected(TarDefect{false, std::move(text)}); }

}  // namespace

bool is_zero(TarBlock block) {
  return std::ranges::all_of(block, [](std::byte byte) { return byte == std::byte{0}; });
}

std::expected<TarHeader, TarDefect> parse_header(TarBlock block) {
  if (!sum_matches(block)) return std::unexpected(TarDefect{true, "not a tar header: its checksum is wrong"});
  TarHeader header;
  header.name = text(block, kName);
  header.type = static_cast<char>(block[kTypeOffset]);
  if (header.type == '\0') header.type = header.name.ends_with('/') ? '5' : '0';
  if (header.type == '1' || header.type == '2') header.link = text(block, kLink);
  const auto bytes = number(raw(block, kSize));
  if (!bytes) return defect("the tar header has an invalid size");
  header.bytes = *bytes;
  header.sparse_continues = header.type == 'S' && block[kSparseContinuesOffset] != std::byte{0};
  // "ustar" with a NUL; old GNU has a space here, and times instead of a prefix after devminor
  if (raw(block, kMagic) == std::string_view("ustar\0", 6))
    if (const std::string_view prefix = text(block, kPrefix); !prefix.empty())
      header.name = std::string(prefix) + "/" + header.name;
  return header;
}

// Records have the form "LENGTH KEYWORD=VALUE\n", with the length of the whole record in decimal.
std::expected<void, TarDefect> parse_pax(std::string_view data, PaxRecords& records) {
  while (!data.empty() && data[0] != '\0') {  // some writers pad with NULs
    const std::size_t space = data.find(' ');
    const auto length = space == std::string_view::npos ? std::nullopt : decimal(data.substr(0, space));
    if (!length || *length <= space + 1 || *length > data.size() || data[*length - 1] != '\n')
      return defect("damaged PAX header: a record's length is wrong");
    const std::string_view record = data.substr(space + 1, *length - space - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) return defect("damaged PAX header: a record has no '='");
    const std::string_view keyword = record.substr(0, equals), value = record.substr(equals + 1);
    if (keyword == "path") {
      records.path = value.substr(0, value.find('\0'));
    } else if (keyword == "linkpath") {
      records.link = value.substr(0, value.find('\0'));
    } else if (keyword == "size") {
      records.bytes = decimal(value);
      if (!records.bytes) return defect("damaged PAX header: the size is not a number");
    } else if (keyword.starts_with("GNU.sparse.")) {
      records.sparse = true;
      if (keyword == "GNU.sparse.name") records.sparse_path = value;
    }
    data.remove_prefix(*length);
  }
  return {};
}

}  // namespace feedline::format
