// SPDX-License-Identifier: Apache-2.0
#include "format/volumes/blosc.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "format/compression/chunk_decompression.h"
#include "format/compression/compression.h"

namespace feedline::format {
namespace {

constexpr std::size_t kHeader = 16, kOffset = 4;
constexpr unsigned kByteShuffle = 1, kStored = 2, kBitShuffle = 4, kOneStream = 16;
// Blocks are split into a stream per byte of an element if these limits allow.
constexpr std::size_t kMostStreams = 16, kLeastElements = 128;

std::unexpected<Error> damaged_blosc(const std::string& how) {
  return data_error("damaged blosc data: " + how, "format");
}

std::uint32_t u32_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Result<Compression> codec_of(unsigned flags) {
  switch (flags >> 5U) {
    case 1:
      return Compression::kLz4;
    case 2:
      return Compression::kSnappy;
    case 3:
      return Compression::kZlib;
    case 4:
      return Compression::kZstd;
    case 0:
      return data_error("the blosc codec 'blosclz' is not supported; lz4, zlib, zstd and snappy are", "format");
    default:
      return data_error("unknown blosc codec " + std::to_string(flags >> 5U), "format");
  }
}

template <std::size_t kBytes>
void unshuffle_elements(const std::byte* in, std::size_t elements, std::byte* out) {
  for (std::size_t i = 0; i < elements; ++i)
    for (std::size_t b = 0; b < kBytes; ++b) out[i * kBytes + b] = in[b * elements + i];
}

// Transposes a matrix of 8 x 8 bits (Hacker's Delight, 7-3).
std::uint64_t transpose_bits(std::uint64_t x) {
  std::uint64_t t = (x ^ (x >> 7U)) & 0x00AA00AA00AA00AAULL;
  x ^= t ^ (t << 7U);
  t = (x ^ (x >> 14U)) & 0x0000CCCC0000CCCCULL;
  x ^= t ^ (t << 14U);
  t = (x ^ (x >> 28U)) & 0x00000000F0F0F0F0ULL;
  return x ^ t ^ (t << 28U);
}

// Bit k of byte b of element i is bit i % 8 of byte (b * 8 + k) * elements / 8 + i / 8. Blosc copies blocks whose
// number of elements is not a multiple of 8.
void unshuffle_bits(std::span<const std::byte> in, std::size_t element, std::byte* out) {
  const std::size_t elements = in.size() / element, groups = elements / 8;
  if (elements % 8 != 0) {
    std::ranges::copy(in, out);
    return;
  }
  for (std::size_t b = 0; b < element; ++b)
    for (std::size_t group = 0; group < groups; ++group) {
      std::uint64_t rows = 0;
      for (std::size_t k = 0; k < 8; ++k)
        rows |= std::to_integer<std::uint64_t>(in[(b * 8 + k) * groups + group]) << (8 * k);
      rows = transpose_bits(rows);
      for (std::size_t i = 0; i < 8; ++i) out[(group * 8 + i) * element + b] = static_cast<std::byte>(rows >> (8 * i));
    }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(elements * element), in.end(), out + elements * element);
}

}  // namespace

void unshuffle(std::span<const std::byte> in, std::size_t element, std::byte* out) {
  const std::size_t elements = in.size() / element;
  switch (element) {
    case 1:
      std::ranges::copy(in, out);
      return;
    case 2:
      unshuffle_elements<2>(in.data(), elements, out);
      break;
    case 4:
      unshuffle_elements<4>(in.data(), elements, out);
      break;
    case 8:
      unshuffle_elements<8>(in.data(), elements, out);
      break;
    default:
      for (std::size_t i = 0; i < elements; ++i)
        for (std::size_t b = 0; b < element; ++b) out[i * element + b] = in[b * elements + i];
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(elements * element), in.end(), out + elements * element);
}

Result<void> decompress_blosc(std::span<const std::byte> chunk, std::span<std::byte> out, memory::ByteBuffer& room) {
  if (chunk.size() < kHeader) return damaged_blosc("the header is truncated");
  const auto version = std::to_integer<unsigned>(chunk[0]), flags = std::to_integer<unsigned>(chunk[2]);
  const auto element = std::max<std::size_t>(std::to_integer<std::size_t>(chunk[3]), 1);
  const std::size_t bytes = u32_at(chunk, 4), block_bytes = u32_at(chunk, 8), stored = u32_at(chunk, 12);
  if (version != 2) return damaged_blosc("the version is " + std::to_string(version) + ", not 2");
  if (bytes != out.size())
    return damaged_blosc("the data has " + std::to_string(bytes) + " bytes instead of " + std::to_string(out.size()));
  if (stored > chunk.size() || stored < kHeader) return damaged_blosc("the data is truncated");
  chunk = chunk.first(stored);
  if (out.empty()) return {};
  if ((flags & kStored) != 0) {
    if (stored != kHeader + bytes) return damaged_blosc("the size of stored data is wrong");
    std::ranges::copy(chunk.subspan(kHeader), out.begin());
    return {};
  }
  if (block_bytes == 0 || block_bytes > bytes)
    return damaged_blosc("the size of a block is " + std::to_string(block_bytes));
  FEEDLINE_TRY(const Compression codec, codec_of(flags));
  const std::size_t blocks = (bytes + block_bytes - 1) / block_bytes;
  if (blocks > (chunk.size() - kHeader) / kOffset) return damaged_blosc("the offsets are truncated");
  const bool is_shuffled = (flags & (kByteShuffle | kBitShuffle)) != 0;
  const auto shuffled = is_shuffled ? room.resize(block_bytes) : std::span<std::byte>();
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto target = out.subspan(block * block_bytes, std::min(block_bytes, bytes - block * block_bytes));
    const auto made = is_shuffled ? shuffled.first(target.size()) : target;
    const bool is_split = (flags & kOneStream) == 0 && element <= kMostStreams &&
                          block_bytes / element >= kLeastElements && target.size() == block_bytes;
    const std::size_t streams = is_split ? element : 1, stream_bytes = made.size() / streams;
    if (stream_bytes * streams != made.size()) return damaged_blosc("a block is not divisible by its streams");
    std::size_t at = u32_at(chunk, kHeader + block * kOffset);
    for (std::size_t i = 0; i < streams; ++i) {
      if (at > chunk.size() || chunk.size() - at < kOffset) return damaged_blosc("a block is outside the data");
      const std::size_t size = u32_at(chunk, at);
      at += kOffset;
      if (size > chunk.size() - at) return damaged_blosc("a block is truncated");
      const auto to = made.subspan(i * stream_bytes, stream_bytes);
      const auto from = chunk.subspan(at, size);
      if (size == stream_bytes)
        std::ranges::copy(from, to.begin());
      else
        FEEDLINE_CHECK_OK(decompress_chunk(codec, from, to));
      at += size;
    }
    // as in c-blosc, both flags mean bytes
    if ((flags & kByteShuffle) != 0)
      unshuffle(made, element, target.data());
    else if ((flags & kBitShuffle) != 0)
      unshuffle_bits(made, element, target.data());
  }
  return {};
}

}  // namespace feedline::format
