// SPDX-License-Identifier: Apache-2.0
#include "pipeline/media/video_source.h"

#include <cstring>
#include <string>
#include <utility>

#include "cache/checksum.h"
#include "pipeline/media/audio_source.h"

namespace feedline::pipeline {

Result<void> VideoSource::open(const memory::Record::Field& stored) {
  close();
  if (stored.storage == nullptr) {
    memory_ = stored.bytes;
    size_ = stored.bytes.size();
    key_ = cache::xxh3(stored.bytes);
    return {};
  }
  FEEDLINE_TRY(reader_, stored.storage->open(stored.object, storage::Access::kRead));
  FEEDLINE_TRY(const storage::ObjectStat stat, reader_->version());
  size_ = stat.bytes;
  if (size_ == 0) return data_error("an empty file", "format");
  key_ = key_of(*stored.storage, stored.object, stat);
  return {};
}

void VideoSource::close() {
  reader_.reset();
  fetched_.reset();
  memory_ = {};
  size_ = key_ = 0;
}

void VideoSource::open(std::shared_ptr<const FetchedVideo> fetched) {
  close();
  reader_ = fetched->reader;
  size_ = fetched->size;
  key_ = fetched->key;
  fetched_ = std::move(fetched);
}

Result<std::size_t> VideoSource::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (fetched_)
    for (const auto& [begin, content] : fetched_->ranges)
      if (offset >= begin && offset - begin <= content.size() && out.size() <= content.size() - (offset - begin)) {
        std::memcpy(out.data(), content.data() + (offset - begin), out.size());
        return out.size();
      }
  if (reader_ != nullptr) return reader_->read_at(offset, out);
  return decode::VideoInMemory(memory_).read_at(offset, out);
}

}  // namespace feedline::pipeline
