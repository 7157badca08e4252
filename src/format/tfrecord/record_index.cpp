// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/record_index.h"

#include <utility>

#include "base/check.h"
#include "format/tfrecord/record_frame.h"

namespace feedline::format {
namespace {

// An index file is a frame (cache/frame.h). R records.
//
//     numbers     version of the shard (size, time, tag: storage/reader.h), R
//     8 x R       end of each record, which is the beginning of the next; the first record begins at 0
enum Number : std::size_t { kShardBytes, kShardTime, kShardTag, kRecords, kNumbers };

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
  cache::FrameBuilder builder(kRecordIndex,
                              {shard.bytes, static_cast<std::uint64_t>(shard.mtime_ns), shard.tag, ends.size()});
  builder.add(ends);
  RecordIndex index;
  index.file_ = builder.write(index.buffer_);
  FEEDLINE_CHECK(index.find_sections() && index.is_consistent());
  return index;
}

std::optional<RecordIndex> RecordIndex::parse(memory::ByteBuffer buffer, std::size_t bytes,
                                              const std::optional<storage::ObjectStat>& shard) {
  RecordIndex index;
  index.buffer_ = std::move(buffer);
  index.file_ = index.buffer_.resize(bytes);  // does not reallocate, so views into it stay valid
  if (!index.find_sections() || (shard && *shard != index.version_) || !index.is_consistent()) return {};
  return index;
}

bool RecordIndex::find_sections() {
  cache::FrameReader reader(file_, kRecordIndex, kNumbers);
  version_ = {reader.number(kShardBytes), static_cast<std::int64_t>(reader.number(kShardTime)),
              reader.number(kShardTag)};
  ends_ = reader.take<std::uint64_t>(reader.count(kRecords));
  return reader.is_whole();
}

bool RecordIndex::is_consistent() const { return cache::is_undamaged(file_) && ends_fit(ends_, version_.bytes); }

}  // namespace feedline::format
