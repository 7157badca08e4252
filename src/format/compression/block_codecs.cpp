// SPDX-License-Identifier: Apache-2.0
#include <lz4.h>
#include <snappy-c.h>
#include <zstd.h>

#include <algorithm>
#include <limits>

#include "format/compression/codec.h"

namespace feedline::format {
namespace {

const char* chars(const std::byte* bytes) { return reinterpret_cast<const char*>(bytes); }

}  // namespace

std::optional<std::uint64_t> size_in_block(Compression kind, std::span<const std::byte> in) {
  // a copy of 64 bytes takes three bytes, so a block that claims a larger ratio is invalid
  constexpr std::uint64_t kMostTimes = 22;
  std::size_t bytes = 0;
  if (kind != Compression::kSnappy || snappy_uncompressed_length(chars(in.data()), in.size(), &bytes) != SNAPPY_OK)
    return {};
  if (bytes > kMostTimes * in.size()) return {};
  return bytes;
}

std::optional<std::size_t> decompress_block(Compression kind, std::span<const std::byte> in, std::span<std::byte> out) {
  if (kind == Compression::kSnappy) {
    std::size_t bytes = out.size();
    const auto state = snappy_uncompress(chars(in.data()), in.size(), reinterpret_cast<char*>(out.data()), &bytes);
    if (state != SNAPPY_OK) return {};
    return bytes;
  }
  constexpr std::size_t kMost = std::numeric_limits<int>::max();  // the library uses int
  if (in.size() > kMost) return {};
  std::byte spare{};  // with no output space the library accepts only one encoding of empty data; the caller detects
                      // excess output
  if (out.empty()) out = std::span(&spare, 1);
  const int made = LZ4_decompress_safe(chars(in.data()), reinterpret_cast<char*>(out.data()),
                                       static_cast<int>(in.size()), static_cast<int>(std::min(out.size(), kMost)));
  if (made < 0) return {};
  return static_cast<std::size_t>(made);
}

Result<std::span<const std::byte>> compress_zstd(std::span<const std::byte> in, int level, memory::ByteBuffer& out) {
  const std::span<std::byte> room = out.resize(ZSTD_compressBound(in.size()));
  const std::size_t made = ZSTD_compress(room.data(), room.size(), in.data(), in.size(), level);
  if (ZSTD_isError(made) != 0) return internal_error(std::string("zstd: ") + ZSTD_getErrorName(made));
  return room.first(made);
}

}  // namespace feedline::format
