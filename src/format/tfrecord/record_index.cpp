// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/record_index.h"

#include <utility>

#include "base/check.h"
#include "format/tfrecord/record_frame.h"

namespace feedline::format {
namespace {

// An index file is a frame (cache/frame.h). R records.
//
//     numbers     size of the shard, its stamp (storage/reader.h), R
//     8 x R       where each record ends; the first begins at 0, and each of the others where the one before ends
enum Number : std::size_t { kShardBytes, kShardStamp, kRecords, kNumbers };

}  // namespace

bool ends_fit(std::span<const std::uint64_t> ends, std::uint64_t shard_bytes) {
  std::uint64_t before = 0;
  for (const std::uint64_t end : ends) {
    if (end < before || end - before < kRecordFrameBytes) return false;
    before = end;
  }
  return before == shard_bytes;
}

RecordIndex RecordIndex::build(std::span<const std::uint64_t> ends, const storage::ObjectStat& shard) {
  cache::FrameBuilder builder(kRecordIndex, {shard.bytes, shard.stamp(), ends.size()});
  builder.add(ends);
  RecordIndex index;
  index.file_ = builder.write(index.buffer_);
  FEEDLINE_CHECK(index.find_sections() && index.is_consistent(shard));
  return index;
}

std::optional<RecordIndex> RecordIndex::parse(memory::ByteBuffer buffer, std::size_t bytes,
                                              const storage::ObjectStat& shard) {
  RecordIndex index;
  index.buffer_ = std::move(buffer);
  index.file_ = index.buffer_.resize(bytes);  // no growth: what is in it stays
  if (!index.find_sections() || !index.is_consistent(shard)) return {};
  return index;
}

bool RecordIndex::find_sections() {
  cache::FrameReader reader(file_, kRecordIndex, kNumbers);
  shard_bytes_ = reader.number(kShardBytes);
  shard_stamp_ = reader.number(kShardStamp);
  ends_ = reader.take<std::uint64_t>(reader.count(kRecords));
  return reader.is_whole();
}

bool RecordIndex::is_consistent(const storage::ObjectStat& shard) const {
  return shard_bytes_ == shard.bytes && shard_stamp_ == shard.stamp() && cache::is_undamaged(file_) &&
         ends_fit(ends_, shard.bytes);
}

}  // namespace feedline::format
