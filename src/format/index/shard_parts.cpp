// SPDX-License-Identifier: Apache-2.0
#include "format/index/shard_parts.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/check.h"

namespace feedline::format {
namespace {

// The layout of an index file with P parts of B bytes in total, stored as a frame (cache/frame.h):
//
//     numbers     version of the shard (size, time, tag: storage/reader.h), P, B, N
//     8 x P       where each part begins in the shard
//     8 x P       where each ends in the bytes that follow
//     B           the concatenated bytes of the parts
//     N           bytes of the format's note
enum Number : std::size_t { kShardBytes, kShardTime, kShardTag, kPartCount, kBytes, kNote, kNumbers };

}  // namespace

ShardParts ShardParts::build(std::span<const Part> parts, const storage::ObjectStat& shard, std::string_view note) {
  std::vector<std::uint64_t> offsets, ends;
  std::vector<std::byte> bytes;
  for (const Part& part : parts) {
    offsets.push_back(part.offset);
    bytes.insert(bytes.end(), part.bytes.begin(), part.bytes.end());
    ends.push_back(bytes.size());
  }
  cache::FrameBuilder builder(kShardParts, {shard.bytes, static_cast<std::uint64_t>(shard.mtime_ns), shard.tag,
                                            std::uint64_t{parts.size()}, bytes.size(), note.size()});
  builder.add(offsets);
  builder.add(ends);
  builder.add(bytes);
  builder.add(note);
  ShardParts made;
  made.file_ = builder.write(made.buffer_);
  FEEDLINE_CHECK(made.find_sections() && made.is_consistent());
  return made;
}

std::optional<ShardParts> ShardParts::parse(memory::ByteBuffer buffer, std::size_t bytes,
                                            const std::optional<storage::ObjectStat>& shard) {
  ShardParts parts;
  parts.buffer_ = std::move(buffer);
  parts.file_ = parts.buffer_.resize(bytes);  // reserved, so the contents do not move
  if (!parts.find_sections() || (shard && *shard != parts.version_) || !parts.is_consistent()) return {};
  return parts;
}

bool ShardParts::find_sections() {
  cache::FrameReader reader(file_, kShardParts, kNumbers);
  version_ = {reader.number(kShardBytes), static_cast<std::int64_t>(reader.number(kShardTime)),
              reader.number(kShardTag)};
  const std::uint64_t count = reader.count(kPartCount);
  offsets_ = reader.take<std::uint64_t>(count);
  ends_ = reader.take<std::uint64_t>(count);
  bytes_ = reader.take<std::byte>(reader.count(kBytes));
  note_ = reader.take<char>(reader.count(kNote));
  return reader.is_whole();
}

bool ShardParts::is_consistent() const {
  if (!cache::is_undamaged(file_)) return false;
  std::uint64_t begin = 0, from = 0;  // the end of the previous part
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    if (ends_[i] <= from || ends_[i] > bytes_.size() || (i > 0 && offsets_[i] <= begin)) return false;
    const std::uint64_t count = ends_[i] - from;
    if (offsets_[i] > version_.bytes || count > version_.bytes - offsets_[i]) return false;
    begin = offsets_[i] + count;
    from = ends_[i];
  }
  return from == bytes_.size();
}

ShardParts::Part ShardParts::part(std::uint64_t number) const {
  const std::uint64_t from = number == 0 ? 0 : ends_[number - 1];
  return {offsets_[number], bytes_.subspan(from, ends_[number] - from)};
}

std::optional<std::span<const std::byte>> ShardParts::find(std::uint64_t offset, std::size_t count) const {
  const auto next = std::ranges::upper_bound(offsets_, offset);
  if (next == offsets_.begin()) return {};
  const Part part = this->part(static_cast<std::uint64_t>(next - offsets_.begin()) - 1);
  const std::uint64_t at = offset - part.offset;
  if (at > part.bytes.size() || count > part.bytes.size() - at) return {};
  return part.bytes.subspan(at, count);
}

}  // namespace feedline::format
