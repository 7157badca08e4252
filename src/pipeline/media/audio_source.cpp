// SPDX-License-Identifier: Apache-2.0
#include "pipeline/media/audio_source.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "cache/checksum.h"

namespace feedline::pipeline {
namespace {

// Read at least, so that decoders that read a few bytes at a time need few system calls.
constexpr std::uint64_t kLeastRead = 16 << 10;

}  // namespace

std::uint64_t key_of(const storage::Storage& storage, const std::string& object, const storage::ObjectStat& stat) {
  const std::string name = storage.identity(object);
  return cache::xxh3(std::as_bytes(std::span(name)), base::mix64(stat.bytes + base::mix64(stat.stamp())));
}

Result<void> AudioSource::open(const memory::Record::Field& stored) {
  if (stored.storage != nullptr) return open(*stored.storage, stored.object);
  close();
  memory_ = stored.bytes;
  size_ = stored.bytes.size();
  return {};
}

Result<void> AudioSource::open(const storage::Storage& storage, const std::string& object) {
  close();
  FEEDLINE_TRY(reader_, storage.open(object, storage::Access::kRead));
  FEEDLINE_TRY(const storage::ObjectStat stat, reader_->version());
  size_ = stat.bytes;
  key_ = key_of(storage, object, stat);
  if (size_ == 0) return data_error("an empty file", "format");
  return {};
}

void AudioSource::close() {
  reader_.reset();
  memory_ = {};
  key_.reset();
  size_ = bytes_read_ = buffered_at_ = buffered_ = 0;
}

Result<std::span<const std::byte>> AudioSource::bytes(std::uint64_t offset, std::uint64_t count) {
  const std::uint64_t begin = std::min(offset, size_), wanted = std::min(count, size_ - begin);
  if (reader_ == nullptr) return memory_.subspan(begin, wanted);
  if (begin >= buffered_at_ && begin + wanted <= buffered_at_ + buffered_)
    return std::span(buffer_.data() + (begin - buffered_at_), wanted);
  const std::uint64_t read = std::min(std::max(wanted, kLeastRead), size_ - begin);
  const auto room = buffer_.resize(read);
  buffered_ = 0;  // in case of an error
  FEEDLINE_TRY(const std::size_t got, reader_->read_at(begin, room));
  buffered_at_ = begin;
  buffered_ = got;
  bytes_read_ += got;
  return std::span<const std::byte>(room.first(std::min<std::uint64_t>(got, wanted)));
}

}  // namespace feedline::pipeline
