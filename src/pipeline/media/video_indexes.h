// SPDX-License-Identifier: Apache-2.0
#pragma once

// The indexes of a source's videos, so that a clip needs no search of its file, in this run and in later ones.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/fork_mutex.h"
#include "cache/entry_store.h"
#include "decode/video/sound_track.h"
#include "decode/video/video_index.h"
#include "feedline/error.h"
#include "pipeline/media/video_source.h"
#include "storage/storage.h"

namespace feedline::pipeline {

struct IndexedVideo {
  explicit IndexedVideo(decode::VideoIndex made) : index(std::move(made)), shown(index) {}
  IndexedVideo(const IndexedVideo&) = delete;
  IndexedVideo& operator=(const IndexedVideo&) = delete;
  const decode::VideoIndex index;
  const decode::ShownFrames shown;
};

// Thread-safe.
class VideoIndexes {
 public:
  // Stores indexes in `directory` if it is not empty, else next to a local file, or in the user's cache folder.
  static std::shared_ptr<VideoIndexes> of_source(const storage::Storage& storage, const std::string& source,
                                                 const std::string& directory);

  // Returns the index of an open video. stream: nullopt for FFmpeg's choice. Errors: as for decode::make_video_index.
  Result<std::shared_ptr<const IndexedVideo>> find(const VideoSource& source, std::optional<int> stream);
  // Returns the sound that belongs to a video. Errors: as for decode::scan_sound.
  Result<std::shared_ptr<const decode::SoundTrack>> find_sound(const VideoSource& source, const IndexedVideo& video);
  // Writes new indexes to their file if there are enough of them, and reads those written by other processes.
  void write();

 private:
  // Parsed indexes, by their keys.
  template <typename Index>
  struct Recent {
    std::unordered_map<std::uint64_t, std::shared_ptr<const Index>> indexes;
    std::uint64_t bytes = 0;
  };
  explicit VideoIndexes(std::vector<std::string> paths);
  // Returns the index from memory or the store, or makes and stores it. parse: from stored bytes, or nullptr. make:
  // returns the index and its bytes to store.
  template <typename Index, typename Parse, typename Make>
  Result<std::shared_ptr<const Index>> find_in(Recent<Index>& recent, std::uint64_t key, Parse parse, Make make);

  cache::EntryStore store_;
  ForkMutex mutex_;
  Recent<IndexedVideo> videos_;
  Recent<decode::SoundTrack> sounds_;
};

}  // namespace feedline::pipeline
