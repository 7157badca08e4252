// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the packets of an indexed video: nearby ones with one read, or all from the file's start if their positions
// are unknown.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decode/video/demuxer.h"
#include "decode/video/ffmpeg_library.h"
#include "decode/video/video_file.h"
#include "decode/video/video_index.h"
#include "feedline/error.h"

namespace feedline::decode {

struct ByteRange {
  std::uint64_t begin = 0, end = 0;
};
// Returns the bytes that are read at once for a packet and those that follow it, up to `last`.
ByteRange range_from(const VideoIndex& index, std::uint32_t packet, std::uint32_t last);
// Adds the ranges for the packets from `first` to `last`.
void add_ranges(const VideoIndex& index, std::uint32_t first, std::uint32_t last, std::vector<ByteRange>& ranges);

// Refers to its arguments, which must outlive it, and uses `room` as its buffer. Not thread-safe.
class PacketReader {
 public:
  PacketReader(const FfmpegLibrary& library, const VideoIndex& index, const VideoFile& source,
               std::vector<std::byte>& room, Media media = Media::kVideo)
      : library_(library), index_(index), source_(source), room_(room), media_(media) {}

  // Returns a packet's bytes, valid until the next call. last: packets after this one will not be read, so they are not
  // fetched either. kData: the file is shorter than its index states, or has changed.
  Result<std::span<const std::byte>> read(std::uint32_t packet, std::uint32_t last);

  std::uint64_t fetched() const { return fetched_; }  // bytes read so far
  std::uint64_t used() const { return used_; }        // bytes of packets

 private:
  Result<void> fetch(std::uint32_t packet, std::uint32_t last);
  Result<std::span<const std::byte>> read_in_sequence(std::uint32_t packet);

  const FfmpegLibrary& library_;
  const VideoIndex& index_;
  const VideoFile& source_;
  std::vector<std::byte>& room_;       // the bytes that were read last,
  std::uint64_t begin_ = 0, end_ = 0;  // from these offsets
  Media media_;
  std::unique_ptr<Demuxer> demuxer_;
  std::uint32_t next_ = 0;  // packet of the demuxer
  std::uint64_t fetched_ = 0, used_ = 0;
};

}  // namespace feedline::decode
