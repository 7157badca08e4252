// SPDX-License-Identifier: Apache-2.0
#include "pipeline/media/video_indexes.h"

#include <mutex>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cache/persisted_tables.h"
#include "decode/video/clip_decoder.h"

namespace feedline::pipeline {
namespace {

constexpr cache::FrameKind kIndexes{0x78'64'69'76'64'65'65'66, 1};  // "feedvidx"
constexpr std::string_view kSuffix = ".feedline-videos";
// Parsed indexes take about 30 bytes per frame: this holds those of a hundred hours.
constexpr std::uint64_t kMostRecent = std::uint64_t{256} << 20;

std::uint64_t bytes_of(const decode::VideoIndex& index) {
  return sizeof index + index.extradata.size() +
         index.packets.size() * (sizeof(decode::VideoPacket) + sizeof(std::uint32_t));
}
std::uint64_t bytes_of(const IndexedVideo& video) { return bytes_of(video.index); }
std::uint64_t bytes_of(const decode::SoundTrack& sound) { return bytes_of(sound.stream); }

}  // namespace

VideoIndexes::VideoIndexes(std::vector<std::string> paths) : store_(kIndexes, std::move(paths)) {}

std::shared_ptr<VideoIndexes> VideoIndexes::of_source(const storage::Storage& storage, const std::string& source,
                                                      const std::string& directory) {
  return std::shared_ptr<VideoIndexes>(
      new VideoIndexes(cache::locations_of_source(kIndexes, kSuffix, storage, source, directory)));
}

template <typename Index, typename Parse, typename Make>
Result<std::shared_ptr<const Index>> VideoIndexes::find_in(Recent<Index>& recent, std::uint64_t key, Parse parse,
                                                           Make make) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = recent.indexes.find(key); found != recent.indexes.end()) return found->second;
  }
  std::shared_ptr<const Index> index;
  std::vector<std::byte> entry;
  if (store_.find(key, entry)) index = parse(entry);
  if (index == nullptr) {
    FEEDLINE_TRY(auto made, make());
    store_.save(key, made.second);
    index = std::move(made.first);
  }
  const std::lock_guard lock(mutex_);
  if (recent.bytes > kMostRecent) recent = {};
  if (recent.indexes.emplace(key, index).second) recent.bytes += bytes_of(*index);
  return index;
}

Result<std::shared_ptr<const IndexedVideo>> VideoIndexes::find(const VideoSource& source, std::optional<int> stream) {
  using Made = std::pair<std::shared_ptr<const IndexedVideo>, std::vector<std::byte>>;
  const std::uint64_t key = base::mix64(source.key() + static_cast<std::uint64_t>(stream.value_or(-1) + 1));
  const auto parse = [&](std::span<const std::byte> entry) -> std::shared_ptr<const IndexedVideo> {
    auto stored = decode::read_video_index(entry);
    if (!stored || stored->file_bytes != source.size()) return nullptr;
    return std::make_shared<const IndexedVideo>(*std::move(stored));
  };
  return find_in(videos_, key, parse, [&]() -> Result<Made> {
    FEEDLINE_TRY(decode::VideoIndex made, decode::make_video_index(source, stream));
    std::vector<std::byte> bytes = decode::write_video_index(made);
    return Made{std::make_shared<const IndexedVideo>(std::move(made)), std::move(bytes)};
  });
}

Result<std::shared_ptr<const decode::SoundTrack>> VideoIndexes::find_sound(const VideoSource& source,
                                                                           const IndexedVideo& video) {
  using Made = std::pair<std::shared_ptr<const decode::SoundTrack>, std::vector<std::byte>>;
  constexpr std::uint64_t kSound = 0x646e'756f'73;  // apart from the keys of video streams
  const std::uint64_t key =
      base::mix64(base::mix64(source.key() + kSound) + static_cast<std::uint64_t>(video.index.stream));
  const auto parse = [&](std::span<const std::byte> entry) -> std::shared_ptr<const decode::SoundTrack> {
    auto stored = decode::read_sound_track(entry);
    if (!stored || stored->stream.file_bytes != source.size()) return nullptr;
    return std::make_shared<const decode::SoundTrack>(*std::move(stored));
  };
  return find_in(sounds_, key, parse, [&]() -> Result<Made> {
    const auto& library = decode::ffmpeg_library();
    if (!library) return std::unexpected(library.error());
    FEEDLINE_TRY(decode::SoundTrack made, decode::scan_sound(*library, source, video.index.stream));
    std::vector<std::byte> bytes = decode::write_sound_track(made);
    return Made{std::make_shared<const decode::SoundTrack>(std::move(made)), std::move(bytes)};
  });
}

void VideoIndexes::write() { (void)store_.write(); }

}  // namespace feedline::pipeline
