// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes a region of a JPEG from a range of its file, which begins at a checkpoint (checkpoints.h).
//
//   outline_of(whole file) ─► stored ─► ImageDecoder::find_part(region) ─► JpegPart: the range to read
//   JpegPart::fill(range) ─► ImageDecoder::open(file), use_part(), decode(region)
//
// A range is only used if the outline, the checkpoints and the range are of the same file up to the range's end. All
// three have a digest of each segment of the file. The digests of the outline and of the checkpoints must be equal from
// the file's start to the range's end, and those of the range must be equal to the outline's. The bytes before the
// range are not read, so the caller must know that the file is the one that the outline describes; otherwise, the range
// must begin at the file's start. Outlines and parts own their memory. Any number of threads may read one; fill() needs
// exclusive use.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decode/jpeg/checkpoints.h"
#include "feedline/operation.h"

namespace feedline::decode {

namespace baseline {
struct Frame;
}
class CheckpointStore;

// Describes a JPEG file that is stored elsewhere.
struct JpegOutline {
  std::array<std::uint64_t, 2> version{};  // of the file, for the caller
  std::uint64_t bytes = 0;                 // of the file
  std::uint64_t scan = 0;                  // the offset of its scan's data
  std::uint64_t key = 0;                   // of its checkpoints
  std::vector<std::byte> head;             // its segments before the scan's data, as far as decoding needs them
  std::vector<std::uint64_t> digests;      // of all its segments (checkpoints.h)
};

// Returns nullopt if reading a range is not worthwhile because the file is small or its header is large, or if the file
// is not a plain JPEG.
std::optional<JpegOutline> outline_of(std::span<const std::byte> file);
std::vector<std::byte> to_bytes(const JpegOutline& outline);
// Returns nullopt if the stored form is damaged.
std::optional<JpegOutline> read_outline(std::span<const std::byte> stored);

struct JpegPart {
  std::uint64_t begin = 0, end = 0;    // the range in the JPEG's file
  std::uint64_t scan = 0;              // the offset of the scan's data in that file
  std::size_t segment = 0;             // bytes between digests
  std::vector<std::uint64_t> digests;  // of the range's segments
  Box region;                          // in the stored image: only this one can be decoded
  Checkpoints checkpoints;             // positions in `file`
  std::vector<std::byte> file;         // the header; after fill() also the range and an end marker

  // Returns false if these are not the bytes of the outline's file.
  bool fill(std::span<const std::byte> range);
  // Its memory, when it is filled.
  std::uint64_t held_bytes() const;
};

// Returns nullptr if the region needs most of the file, or if its checkpoints are not known. frame: from the outline's
// head. is_same_file: the caller knows that the file has not changed.
std::shared_ptr<JpegPart> find_jpeg_part(const baseline::Frame& frame, const Box& region, const JpegOutline& outline,
                                         bool is_same_file, const CheckpointStore& store);

}  // namespace feedline::decode
