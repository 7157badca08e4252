// SPDX-License-Identifier: Apache-2.0
#include "format/volumes/chunk_codec.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/crc.h"
#include "format/compression/chunk_decompression.h"
#include "format/volumes/blosc.h"

namespace feedline::format {
namespace {

using In = std::span<const std::byte>;

std::uint32_t last_u32(In bytes) {
  std::uint32_t value;
  std::memcpy(&value, bytes.data() + bytes.size() - sizeof value, sizeof value);
  return value;
}

// HDF5's H5_checksum_fletcher32, over big-endian words of 16 bits.
std::uint32_t fletcher32(In bytes) {
  std::uint32_t first = 0, second = 0;
  std::size_t words = bytes.size() / 2, at = 0;
  while (words > 0) {
    std::size_t block = std::min<std::size_t>(words, 360);
    words -= block;
    for (; block > 0; --block, at += 2) {
      first += (std::to_integer<std::uint32_t>(bytes[at]) << 8U) | std::to_integer<std::uint32_t>(bytes[at + 1]);
      second += first;
    }
    first = (first & 0xffffU) + (first >> 16U);
    second = (second & 0xffffU) + (second >> 16U);
  }
  if (bytes.size() % 2 != 0) {
    first += std::to_integer<std::uint32_t>(bytes.back()) << 8U;
    second += first;
    first = (first & 0xffffU) + (first >> 16U);
    second = (second & 0xffffU) + (second >> 16U);
  }
  first = (first & 0xffffU) + (first >> 16U);
  second = (second & 0xffffU) + (second >> 16U);
  return (second << 16U) | first;
}

// Removes a checksum at the end.
Result<In> without_sum(ChunkCodec codec, In in) {
  if (in.size() < 4) return data_error("the chunk is truncated: it has no checksum", "format");
  const In data = in.first(in.size() - 4);
  const std::uint32_t sum = codec == ChunkCodec::kCrc32c
                                ? static_cast<std::uint32_t>(base::crc(base::CrcKind::k32c, 0, data))
                                : fletcher32(data);
  if (sum == last_u32(in)) return data;
  return data_error("the chunk is damaged: its " + std::string(name_of(codec)) + " checksum does not match", "format");
}

Compression compression_of(ChunkCodec codec) {
  return codec == ChunkCodec::kZstd   ? Compression::kZstd
         : codec == ChunkCodec::kGzip ? Compression::kGzip
                                      : Compression::kZlib;
}

bool is_sum(ChunkCodec codec) { return codec == ChunkCodec::kCrc32c || codec == ChunkCodec::kFletcher32; }

}  // namespace

std::string_view name_of(ChunkCodec codec) {
  static constexpr std::string_view kNames[] = {"zstd",  "gzip",   "zlib",    "lz4",
                                                "blosc", "crc32c", "shuffle", "fletcher32"};
  return kNames[static_cast<std::size_t>(codec)];
}

std::optional<DType> dtype_of_descr(std::string_view text) {
  if (text.size() != 3) return {};
  static constexpr std::pair<std::string_view, DType> kNames[] = {
      {"b1", DType::kBool},   {"i1", DType::kInt8},    {"i2", DType::kInt16},  {"i4", DType::kInt32},
      {"i8", DType::kInt64},  {"u1", DType::kUint8},   {"u2", DType::kUint16}, {"u4", DType::kUint32},
      {"u8", DType::kUint64}, {"f4", DType::kFloat32}, {"f8", DType::kFloat64}};
  for (const auto& [name, dtype] : kNames)
    if (text.substr(1) == name) return dtype;
  return {};
}

memory::Strides ChunkLayout::strides() const {
  std::array<std::int64_t, Shape::kMaxDims> stored{};
  const std::size_t dims = shape.dims();
  for (std::size_t i = 0; i < dims; ++i) stored[i] = shape[order[i]];
  const auto in_order = memory::c_strides(std::span(stored).first(dims), size_of(dtype));
  memory::Strides result{};
  for (std::size_t i = 0; i < dims; ++i) result[order[i]] = in_order[i];
  return result;
}

Result<In> decode_chunk(const ChunkLayout& layout, In stored, std::uint32_t skipped, memory::VolumeBuffers& buffers) {
  const std::size_t bytes = layout.bytes();
  In data = stored;
  // Checksums before a compressor do not change its output's size by more than their own.
  for (std::size_t i = layout.codecs.size(); i-- > 0;) {
    if ((skipped >> i & 1U) != 0) continue;
    const ChunkCodec codec = layout.codecs[i];
    if (is_sum(codec)) {
      FEEDLINE_TRY(data, without_sum(codec, data));
      continue;
    }
    std::size_t size = bytes;
    for (std::size_t before = 0; before < i; ++before)
      if (is_sum(layout.codecs[before]) && (skipped >> before & 1U) == 0) size += 4;
    // `data` may be in the buffer that the previous codec wrote
    memory::ByteBuffer& room = data.data() == buffers.chunk.data() ? buffers.shuffled : buffers.chunk;
    const auto out = room.resize(size);
    switch (codec) {
      case ChunkCodec::kBlosc:
        FEEDLINE_CHECK_OK(decompress_blosc(data, out, buffers.raw));
        break;
      case ChunkCodec::kLz4: {
        std::uint32_t claimed = 0;
        if (data.size() < 4) return data_error("damaged lz4 data: the chunk is truncated", "format");
        std::memcpy(&claimed, data.data(), 4);
        if (claimed != size)
          return data_error(
              "damaged lz4 data: " + std::to_string(claimed) + " bytes instead of " + std::to_string(size), "format");
        FEEDLINE_CHECK_OK(decompress_chunk(Compression::kLz4, data.subspan(4), out));
        break;
      }
      case ChunkCodec::kShuffle:
        if (data.size() != size)
          return data_error(
              "the chunk has " + std::to_string(data.size()) + " bytes instead of " + std::to_string(size), "format");
        unshuffle(data, size_of(layout.dtype), out.data());
        break;
      default:
        FEEDLINE_CHECK_OK(decompress_chunk(compression_of(codec), data, out));
    }
    data = out;
  }
  if (data.size() != bytes)
    return data_error("the chunk has " + std::to_string(data.size()) + " bytes instead of " + std::to_string(bytes),
                      "format");
  if (!layout.is_swapped || size_of(layout.dtype) == 1) return data;
  memory::ByteBuffer& room = data.data() == buffers.chunk.data() ? buffers.shuffled : buffers.chunk;
  const auto out = room.resize(bytes);
  std::ranges::copy(data, out.begin());
  memory::swap_bytes(out.data(), bytes / size_of(layout.dtype), size_of(layout.dtype));
  return In(out);
}

}  // namespace feedline::format
