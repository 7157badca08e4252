// SPDX-License-Identifier: Apache-2.0
#pragma once

// The codecs of a stored chunk, as in Zarr's and HDF5's metadata, and their inversion.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"
#include "memory/strided_copy.h"
#include "memory/volume.h"

namespace feedline::format {

enum class ChunkCodec : std::uint8_t {
  kZstd,
  kGzip,
  kZlib,
  kLz4,         // numcodecs: 4 bytes with the decompressed size, little-endian, then a block
  kBlosc,       // blosc.h
  kCrc32c,      // followed by the CRC-32C of the chunk, little-endian
  kShuffle,     // the first bytes of all elements, then the second ones, and so on
  kFletcher32,  // HDF5: followed by a checksum
};
std::string_view name_of(ChunkCodec codec);

// Returns the dtype for NumPy's notation, such as "<i2", regardless of the byte order; nullopt if it is not supported.
std::optional<DType> dtype_of_descr(std::string_view text);

// The form of a chunk in memory after its codecs are inverted.
struct ChunkLayout {
  DType dtype = DType::kUint8;
  Shape shape;                                        // of every chunk, also at the edges
  std::vector<ChunkCodec> codecs;                     // in the order in which they were applied
  bool is_swapped = false;                            // big-endian
  std::array<std::uint8_t, Shape::kMaxDims> order{};  // the axis of the array that is axis i of the stored chunk

  std::size_t bytes() const { return ArraySpec{dtype, shape}.bytes(); }
  memory::Strides strides() const;  // in a decoded chunk, one per axis of the array
};

// Inverts the codecs, except those whose bits are set in `skipped`. The result points into `stored` or the buffers.
// kData: the chunk is damaged, or its size is not that of the layout.
Result<std::span<const std::byte>> decode_chunk(const ChunkLayout& layout, std::span<const std::byte> stored,
                                                std::uint32_t skipped, memory::VolumeBuffers& buffers);

}  // namespace feedline::format
