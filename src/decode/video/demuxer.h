// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the packets of one stream in file order, by FFmpeg's libavformat.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/video/ffmpeg_library.h"
#include "decode/video/video_file.h"
#include "decode/video/video_index.h"
#include "feedline/error.h"

namespace feedline::decode {

enum class Media : std::uint8_t { kVideo, kSound };

// Owns FFmpeg's context of one open file. Not thread-safe.
class Demuxer {
 public:
  // stream: nullopt for FFmpeg's choice; a cover picture is never chosen. kData: FFmpeg cannot read the file, or it has
  // no such video stream. Requires: library and source outlive the demuxer.
  static Result<std::unique_ptr<Demuxer>> open(const FfmpegLibrary& library, const VideoFile& source,
                                               std::optional<int> stream);
  // The same for a sound stream: FFmpeg's choice for the video stream `video`, or the stream `stream`. The packets of
  // other streams are not read.
  static Result<std::unique_ptr<Demuxer>> open_sound(const FfmpegLibrary& library, const VideoFile& source, int video,
                                                     std::optional<int> stream = {});
  ~Demuxer();
  Demuxer(const Demuxer&) = delete;
  Demuxer& operator=(const Demuxer&) = delete;

  // The stream's properties, without packets.
  const VideoIndex& stream() const { return stream_; }
  const ffmpeg::CodecParameters* parameters() const { return parameters_; }

  struct Read {
    std::span<const std::byte> bytes;  // valid until the next call
    std::int64_t pts = 0;              // ffmpeg::kNoTime: unknown
    std::int64_t duration = 0;
    std::int64_t position = 0;  // near the packet's bytes in the file; -1: unknown
    bool is_key = false, is_hidden = false;
    std::uint32_t skipped = 0, skipped_at_end = 0;  // decoded samples that are not heard
  };
  // Returns the next packet of the stream; nullopt at the end of the file.
  Result<std::optional<Read>> next();

 private:
  Demuxer(const FfmpegLibrary& library, const VideoFile& source) : library_(library), source_(source) {}
  Result<void> open_input();
  Result<void> choose(std::optional<int> stream, int media, int related);
  int orientation(const void* stream) const;
  std::unexpected<Error> failed(const std::string& what, int error);
  static int read_bytes(void* self, std::uint8_t* buffer, int bytes);
  static std::int64_t seek(void* self, std::int64_t offset, int whence);

  const FfmpegLibrary& library_;
  const VideoFile& source_;
  std::uint64_t position_ = 0;
  std::optional<Error> failure_;  // of the source
  ffmpeg::IoContext* io_ = nullptr;
  ffmpeg::FormatContext* format_ = nullptr;
  ffmpeg::Packet* packet_ = nullptr;
  const ffmpeg::CodecParameters* parameters_ = nullptr;
  VideoIndex stream_;
};

// Finds a packet's bytes in the file: containers report the position of its block, whose header comes before them.
// nullopt: they are not consecutive. buffer: reused memory.
Result<std::optional<std::uint64_t>> locate(const VideoFile& source, const Demuxer::Read& packet,
                                            std::vector<std::byte>& buffer);

// Returns the index of a file in any container, which is read once.
Result<VideoIndex> scan_video(const FfmpegLibrary& library, const VideoFile& source, std::optional<int> stream);

}  // namespace feedline::decode
