// SPDX-License-Identifier: Apache-2.0
#include "format/tar/tar_members.h"

#include <string>

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;
using Member = ShardIndex::Member;

// Returns the bytes of a range, either mapped or read into `room`.
Result<Bytes> fetch(const storage::Reader& reader, std::uint64_t offset, std::span<std::byte> room) {
  FEEDLINE_TRY(const std::size_t got, reader.read_at(offset, room));
  if (got == room.size()) return room;
  return storage_error(
      "the file ends at byte " + std::to_string(offset + got) + ", inside a member: the file became shorter", 0);
}

std::uint64_t bytes_of(std::span<const Range> ranges) {
  std::uint64_t total = 0;
  for (const Range& range : ranges) total += range.end - range.begin;
  return total;
}

// Maps each range. Returns false if the ranges must be read instead.
Result<bool> view(const storage::Reader& reader, std::span<const Range> ranges, std::span<Bytes> pieces) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    FEEDLINE_TRY(const auto mapped, reader.view(ranges[i].begin, ranges[i].end - ranges[i].begin));
    if (!mapped) return false;
    pieces[i] = *mapped;
  }
  return true;
}

Result<void> read_all(const storage::Reader& reader, std::span<const Range> ranges, memory::ByteBuffer& storage,
                      std::uint64_t most, std::span<Bytes> pieces) {
  FEEDLINE_TRY(std::span<std::byte> room, storage.make_room(bytes_of(ranges), most));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    FEEDLINE_TRY(pieces[i], fetch(reader, ranges[i].begin, room.first(ranges[i].end - ranges[i].begin)));
    room = room.subspan(pieces[i].size());
  }
  return {};
}

}  // namespace

Range range_of(std::span<const Member> members) {
  Range all;
  for (const Member& member : members) all.add(member);
  return all;
}

Result<void> fetch_members(const std::shared_ptr<const storage::Reader>& reader, std::span<const Member> members,
                           memory::Record& record, std::span<Bytes> payloads) {
  const Range whole = range_of(members);
  const bool at_once = whole.is_dense();
  ShortList<Range> listed(at_once ? 1 : members.size());
  const std::span<Range> ranges = listed.all();
  if (at_once)
    ranges[0] = whole;
  else
    for (std::size_t i = 0; i < members.size(); ++i) ranges[i].add(members[i]);
  // mapped or not: reading a view loads its pages
  if (const std::uint64_t total = bytes_of(ranges); total > record.most_bytes)
    return memory::too_large(total, record.most_bytes);
  ShortList<Bytes> pieces(ranges.size());
  FEEDLINE_TRY(const bool is_mapped, view(*reader, ranges, pieces.all()));
  if (is_mapped)
    record.pin = reader;
  else
    FEEDLINE_CHECK_OK(read_all(*reader, ranges, record.storage, record.most_bytes, pieces.all()));
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t range = at_once ? 0 : i;
    payloads[i] = pieces.all()[range].subspan(members[i].offset - ranges[range].begin, members[i].bytes);
  }
  return {};
}

}  // namespace feedline::format
