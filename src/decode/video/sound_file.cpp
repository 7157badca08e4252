// SPDX-License-Identifier: Apache-2.0
#include "decode/video/sound_file.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/fork_mutex.h"
#include "decode/video/sound_reader.h"
#include "decode/video/sound_track.h"

namespace feedline::decode {
namespace {

using Track = std::shared_ptr<const SoundTrack>;

// Tracks of files that were read recently. Thread-safe.
class RecentTracks {
 public:
  Track find(std::uint64_t key) {
    const std::lock_guard lock(mutex_);
    const auto found = tracks_.find(key);
    return found == tracks_.end() ? nullptr : found->second;
  }
  void add(std::uint64_t key, const Track& track) {
    constexpr std::size_t kMostPackets = 1 << 20;  // 12 hours of AAC at 24 kHz, 32 MB
    constexpr std::size_t kOfTrack = 32;           // packets that take as much memory as the rest of a track
    const std::lock_guard lock(mutex_);
    if (packets_ > kMostPackets) {
      tracks_.clear();
      packets_ = 0;
    }
    if (tracks_.emplace(key, track).second) packets_ += track->stream.packets.size() + kOfTrack;
  }

 private:
  ForkMutex mutex_;
  std::unordered_map<std::uint64_t, Track> tracks_;
  std::size_t packets_ = 0;
};

// Used by one thread, as the source is.
class SourceFile final : public VideoFile {
 public:
  explicit SourceFile(ByteSource& source) : source_(source) {}
  std::uint64_t size() const override { return source_.size(); }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    FEEDLINE_TRY(const auto bytes, source_.bytes(offset, out.size()));
    std::ranges::copy(bytes, out.begin());
    return bytes.size();
  }

 private:
  ByteSource& source_;
};

class SoundFile final : public AudioReader {
 public:
  SoundFile(const FfmpegLibrary& library, ByteSource& source, Track track)
      : file_(source), reader_(library, std::move(track), file_) {
    info_ = reader_.info();
  }
  Result<void> read(std::uint64_t begin, std::span<float> out) override { return reader_.read(begin, out); }
  Result<void> read(std::uint64_t begin, std::span<std::int16_t> out) override { return reader_.read(begin, out); }

 private:
  const SourceFile file_;
  SoundReader reader_;
};

}  // namespace

Result<void> check_sound_library() {
  if (const auto& library = ffmpeg_library(); !library)
    return config_error("AAC, and audio in MP4, need FFmpeg: " + library.error().what);
  return {};
}

Result<std::unique_ptr<AudioReader>> open_sound_file(ByteSource& source) {
  static auto& recent = *new RecentTracks;  // never destroyed, as threads may outlive static objects
  FEEDLINE_CHECK_OK(check_sound_library());
  const auto& library = ffmpeg_library();
  const auto key = source.key();
  Track track = key ? recent.find(*key) : nullptr;
  if (track == nullptr) {
    FEEDLINE_TRY(SoundTrack made, scan_sound(*library, SourceFile(source), -1));
    track = std::make_shared<const SoundTrack>(std::move(made));
    if (key) recent.add(*key, track);
  }
  return std::make_unique<SoundFile>(*library, source, std::move(track));
}

}  // namespace feedline::decode
