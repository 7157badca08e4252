// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes chosen frames of an indexed video. Each has the wanted time stamp and equals that of decoding the file in
// order; otherwise the result is an error.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "decode/video/ffmpeg_library.h"
#include "decode/video/packet_reader.h"
#include "decode/video/video_file.h"
#include "decode/video/video_index.h"
#include "feedline/error.h"
#include "memory/pixels.h"

namespace feedline::decode {

// Owns scratch memory of one thread; FFmpeg's decoder exists only during decode(). Not thread-safe.
class ClipDecoder {
 public:
  // Requires: library outlives the decoder.
  explicit ClipDecoder(const FfmpegLibrary& library);
  ~ClipDecoder();
  ClipDecoder(ClipDecoder&&) noexcept;
  ClipDecoder& operator=(ClipDecoder&&) noexcept;

  // Receives frame number frames[position] as RGB, rotated as in players. The pixels are valid during the call.
  using Sink = std::function<Result<void>(std::size_t position, memory::PixelView pixels)>;
  // Calls the sink once for each position, in any order. kData names the frame, its time and its stream: a packet is
  // damaged or missing, or the library has no such decoder. Requires: frames are below shown.count(), and shown is of
  // the index.
  Result<void> decode(const VideoIndex& index, const ShownFrames& shown, const VideoFile& source,
                      std::span<const std::uint64_t> frames, const Sink& sink);

  // Returns the ranges of the file that decode() reads for these frames, if nothing is damaged. Empty if the packets
  // have no positions. Requires and errors: as for decode().
  Result<std::vector<ByteRange>> find_ranges(const VideoIndex& index, const ShownFrames& shown,
                                             std::span<const std::uint64_t> frames);

  // Decodes all packets of a video without time stamps, and returns the number of frames.
  Result<std::uint64_t> count_frames(const VideoIndex& index, const VideoFile& source);

  // Totals of all calls of decode().
  struct Counts {
    std::uint64_t opens = 0, open_ns = 0;  // FFmpeg's decoders
    std::uint64_t frames = 0;              // decoded, wanted or not
    std::uint64_t bytes_fetched = 0, bytes_used = 0;
  };
  const Counts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns the index of a video file: of an MP4 without FFmpeg, of others by reading them once. stream: nullopt for
// FFmpeg's choice. kConfig: the file needs FFmpeg, which is not available. kData: the file is damaged, or has no such
// stream. Thread-safe.
Result<VideoIndex> make_video_index(const VideoFile& source, std::optional<int> stream);

}  // namespace feedline::decode
