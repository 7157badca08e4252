// SPDX-License-Identifier: Apache-2.0
#include "format/tar/class_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/tar/tar_header.h"

namespace feedline::format {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;  // a million names of 16 letters

std::string unescaped(std::string_view line) {
  std::string name;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::string_view code = line.substr(i, 3);
    const bool escaped = code == "%25" || code == "%0A";
    name += escaped ? (code == "%25" ? '%' : '\n') : line[i];
    if (escaped) i += code.size() - 1;
  }
  return name;
}

}  // namespace

Result<std::vector<std::string>> stored_class_names(const storage::Reader& shard) {
  std::vector<std::string> names;
  std::array<std::byte, kBlockBytes> block;
  FEEDLINE_TRY(const std::size_t got, shard.read_at(0, block));
  if (got < block.size()) return names;
  const auto header = parse_header(block);
  if (!header || header->name != kClassNamesMember || header->type != '0' || header->bytes > kMostBytes) return names;
  std::string text(static_cast<std::size_t>(header->bytes), '\0');
  FEEDLINE_TRY(const std::size_t read, shard.read_at(kBlockBytes, std::as_writable_bytes(std::span(text))));
  if (read < text.size()) return names;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    names.push_back(unescaped(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return names;
}

}  // namespace feedline::format
