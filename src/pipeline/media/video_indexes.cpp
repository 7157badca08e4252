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

std::uint64_t bytes_of(const IndexedVideo& video) {
  return sizeof(IndexedVideo) + video.index.extradata.size() +
         video.index.packets.size() * (sizeof(decode::VideoPacket) + sizeof(std::uint32_t));
}

}  // namespace

VideoIndexes::VideoIndexes(std::vector<std::string> paths) : store_(kIndexes, std::move(paths)) {}

std::shared_ptr<VideoIndexes> VideoIndexes::of_source(const storage::Storage& storage, const std::string& source,
                                                      const std::string& directory) {
  return std::shared_ptr<VideoIndexes>(
      new VideoIndexes(cache::locations_of_source(kIndexes, kSuffix, storage, source, directory)));
}

std::shared_ptr<VideoIndexes> VideoIndexes::in_memory() { return std::shared_ptr<VideoIndexes>(new VideoIndexes({})); }

Result<std::shared_ptr<const IndexedVideo>> VideoIndexes::find(const VideoSource& source, std::optional<int> stream) {
  const std::uint64_t key = base::mix64(source.key() + static_cast<std::uint64_t>(stream.value_or(-1) + 1));
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = recent_.find(key); found != recent_.end()) return found->second;
  }
  std::shared_ptr<const IndexedVideo> video;
  std::vector<std::byte> entry;
  if (store_.find(key, entry))
    if (auto stored = decode::read_video_index(entry); stored && stored->file_bytes == source.size())
      video = std::make_shared<const IndexedVideo>(*std::move(stored));
  if (video == nullptr) {
    FEEDLINE_TRY(decode::VideoIndex made, decode::make_video_index(source, stream));
    store_.save(key, decode::write_video_index(made));
    video = std::make_shared<const IndexedVideo>(std::move(made));
  }
  const std::lock_guard lock(mutex_);
  if (recent_bytes_ > kMostRecent) {
    recent_.clear();
    recent_bytes_ = 0;
  }
  if (recent_.emplace(key, video).second) recent_bytes_ += bytes_of(*video);
  return video;
}

void VideoIndexes::write() { (void)store_.write(); }

}  // namespace feedline::pipeline
