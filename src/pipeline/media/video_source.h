// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "decode/video/video_file.h"
#include "memory/record.h"
#include "pipeline/media/fetched_video.h"
#include "storage/storage.h"

namespace feedline::pipeline {

// The bytes of a stored video: in memory, or read from its object in parts. Reused for the next sample by one thread.
class VideoSource final : public decode::VideoFile {
 public:
  // kStorage: the object cannot be opened. Requires: the field outlives its use.
  Result<void> open(const memory::Record::Field& stored);
  // Uses a video that was opened in advance, and its bytes.
  void open(std::shared_ptr<const FetchedVideo> fetched);
  void close();
  const std::shared_ptr<const storage::Reader>& reader() const { return reader_; }  // nullptr: in memory

  std::uint64_t size() const override { return size_; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  // Identifies the contents: the object's name and version, or a checksum of the bytes in memory.
  std::uint64_t key() const { return key_; }

 private:
  std::span<const std::byte> memory_;
  std::shared_ptr<const storage::Reader> reader_;  // nullptr: in memory
  std::shared_ptr<const FetchedVideo> fetched_;    // nullptr: nothing was read in advance
  std::uint64_t size_ = 0, key_ = 0;
};

}  // namespace feedline::pipeline
