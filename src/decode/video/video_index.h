// SPDX-License-Identifier: Apache-2.0
#pragma once

// The frames of a video file's stream: where their packets are, and when they are shown. With it, decoding a clip
// reads only the clip's bytes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline::decode {

struct VideoPacket {
  std::int64_t pts = 0;      // when its frame is shown, in units of the time base
  std::uint64_t offset = 0;  // in the file; 0 if the packets are read in sequence
  std::uint32_t bytes = 0;
  bool is_key = false;     // decoding can begin here
  bool is_hidden = false;  // decoded but never shown, as an edit list excludes it
  friend bool operator==(const VideoPacket&, const VideoPacket&) = default;
};

struct VideoIndex {
  std::uint64_t file_bytes = 0;
  int stream = 0;         // number in the file, as FFmpeg counts
  std::string codec;      // FFmpeg's name: "h264", "hevc", "vp9", "av1"
  std::uint32_t tag = 0;  // the container's four characters for the codec, which some decoders need; low bits first
  std::vector<std::byte> extradata;
  int width = 0, height = 0;                // as stored
  std::int64_t time_num = 1, time_den = 1;  // seconds in a unit of time
  int color_range = 0, colorspace = 2;      // FFmpeg's numbers for the container's values; 0 and 2: not set
  int orientation = 1;                      // EXIF's number of the turn that players apply, 1 to 8
  std::uint32_t reordered = 0;              // the largest number of packets between a packet and its frame
  // Packets have no usable offset (MPEG-TS): they are read from the file's start. `packets` are in the same order.
  bool is_sequential = false;
  bool has_times = true;             // if not, frames are in the order in which they are decoded, and times are unknown
  std::int64_t end = 0;              // when the last frame ends; without times: the number of frames
  std::vector<VideoPacket> packets;  // in decoding order

  friend bool operator==(const VideoIndex&, const VideoIndex&) = default;
};

// Bytes that read_video_index() reads. The layout is described in video_index.cpp.
std::vector<std::byte> write_video_index(const VideoIndex& index);
// kData: the bytes are damaged, or of another version.
Result<VideoIndex> read_video_index(std::span<const std::byte> bytes);

// A video's frames in the order in which they are shown. Refers to the index, which must outlive it. Thread-safe.
class ShownFrames {
 public:
  explicit ShownFrames(const VideoIndex& index);

  std::uint64_t count() const {
    return index_.has_times ? packets_.size() : static_cast<std::uint64_t>(std::max<std::int64_t>(index_.end, 0));
  }
  // The packet of frame number `frame`. Requires: the index has times, and frame < count().
  std::uint32_t packet(std::uint64_t frame) const { return packets_[frame]; }
  // Seconds since the first frame is shown. Requires: the index has times, and frame < count().
  double time(std::uint64_t frame) const;
  // When the frame's successor is shown, or the video ends, in seconds since the first frame. Requires: as for time().
  double end(std::uint64_t frame) const;
  // When the first frame is shown, in seconds of the file's time. Requires: as for time().
  double start() const;
  // Of all frames, in seconds. Requires: the index has times.
  double duration() const;
  // The frame that is shown at a time: the last one that begins by then. Times count as equal if they differ by less
  // than a ten-thousandth of the time base. nullopt: no frame is shown then, or the index has no
  // times.
  std::optional<std::uint64_t> at(double seconds) const;

 private:
  double seconds(std::int64_t units) const;

  const VideoIndex& index_;
  std::vector<std::uint32_t> packets_;
};

// Sets `reordered` and `end` of an index whose packets are known. last: the duration of the last frame; 0: unknown.
void finish_index(VideoIndex& index, std::int64_t last);

}  // namespace feedline::decode
