// SPDX-License-Identifier: Apache-2.0
#include "format/numpy_files/zip_directory.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr std::size_t kMostComment = 65'535;

template <typename Number>
Number at(Bytes bytes, std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

std::unexpected<Error> refused(const std::string& what) { return data_error("npz: " + what, "format"); }

struct Directory {
  std::uint64_t members, bytes, begin;
};

Result<Directory> find_directory(Bytes archive) {
  if (archive.size() < kEndBytes) return refused("the file is truncated, or not a zip archive");
  const std::size_t last = archive.size() - kEndBytes;
  const std::size_t first = last - std::min(last, kMostComment);
  for (std::size_t end = last + 1; end-- > first;) {
    if (at<std::uint32_t>(archive, end) != kEnd) continue;
    const Bytes record = archive.subspan(end);
    Directory found{at<std::uint16_t>(record, 10), at<std::uint32_t>(record, 12), at<std::uint32_t>(record, 16)};
    if (end < kLocatorBytes || at<std::uint32_t>(archive, end - kLocatorBytes) != kLocator64) return found;
    const auto location = at<std::uint64_t>(archive, end - kLocatorBytes + 8);
    if (location > archive.size() || archive.size() - location < kEnd64Bytes ||
        at<std::uint32_t>(archive, location) != kEnd64)
      return refused("the end record of ZIP64 is damaged");
    const Bytes big = archive.subspan(location);
    return Directory{at<std::uint64_t>(big, 32), at<std::uint64_t>(big, 40), at<std::uint64_t>(big, 48)};
  }
  return refused("there is no directory at the end: the file is truncated, or not a zip archive");
}

// Reads sizes and offsets that do not fit into 32 bits from a member's ZIP64 extra field. Returns false if the extra
// field or one of the numbers is missing.
bool take_big_numbers(Bytes extra, std::initializer_list<std::uint64_t*> numbers) {
  const auto is_big = [](const std::uint64_t* number) { return *number == std::numeric_limits<std::uint32_t>::max(); };
  if (std::ranges::none_of(numbers, is_big)) return true;
  while (extra.size() >= 4) {
    const auto kind = at<std::uint16_t>(extra, 0);
    const std::size_t bytes = at<std::uint16_t>(extra, 2);
    if (bytes > extra.size() - 4) return false;
    Bytes content = extra.subspan(4, bytes);
    extra = extra.subspan(4 + bytes);
    if (kind != 1) continue;
    for (std::uint64_t* number : numbers) {
      if (!is_big(number)) continue;
      if (content.size() < sizeof *number) return false;
      *number = at<std::uint64_t>(content, 0);
      content = content.subspan(sizeof *number);
    }
    return true;
  }
  return false;
}

// Returns the offset of a member's data after its local header, or nullopt if the header is damaged.
std::optional<std::uint64_t> data_of(Bytes archive, std::uint64_t local) {
  if (local > archive.size() || archive.size() - local < kLocalBytes) return {};
  const Bytes header = archive.subspan(local);
  if (at<std::uint32_t>(header, 0) != kLocal) return {};
  const std::size_t before = kLocalBytes + at<std::uint16_t>(header, 26) + at<std::uint16_t>(header, 28);
  if (before > header.size()) return {};
  return local + before;
}

Result<ZipMember> member_in(Bytes archive, Bytes entry, std::size_t name_bytes, std::size_t extra_bytes) {
  ZipMember member;
  member.name.assign(reinterpret_cast<const char*>(entry.data() + kCentralBytes), name_bytes);
  const std::string shown = "the member '" + member.name + "' ";
  if ((at<std::uint16_t>(entry, 8) & 1U) != 0) return refused(shown + "is encrypted");
  const auto method = at<std::uint16_t>(entry, 10);
  if (method != 0 && method != Z_DEFLATED)
    return refused(shown + "is compressed with method " + std::to_string(method) +
                   "; only stored and deflated members are supported");
  member.is_deflated = method != 0;
  member.crc = at<std::uint32_t>(entry, 16);
  std::uint64_t stored = at<std::uint32_t>(entry, 20), local = at<std::uint32_t>(entry, 42);
  member.plain_bytes = at<std::uint32_t>(entry, 24);
  if (!take_big_numbers(entry.subspan(kCentralBytes + name_bytes, extra_bytes), {&member.plain_bytes, &stored, &local}))
    return refused(shown + "has damaged sizes");
  const auto begin = data_of(archive, local);
  if (!begin || stored > archive.size() - *begin)
    return refused(shown + "extends beyond the end of the file: the file is truncated or damaged");
  constexpr std::uint64_t kMostRatio = 1032;  // maximum compression ratio of deflate
  if (!member.is_deflated && stored != member.plain_bytes)
    return refused(shown + "is uncompressed, but has two different sizes");
  if (member.is_deflated && member.plain_bytes / kMostRatio > stored + 1)
    return refused(shown + "is too small for its uncompressed size");
  member.stored = archive.subspan(*begin, stored);
  return member;
}

}  // namespace

Result<std::vector<ZipMember>> zip_members(Bytes archive) {
  FEEDLINE_TRY(const Directory directory, find_directory(archive));
  if (directory.begin > archive.size() || directory.bytes > archive.size() - directory.begin ||
      directory.members > directory.bytes / kCentralBytes)
    return refused("the directory extends beyond the end of the file: the file is truncated or damaged");
  Bytes rest = archive.subspan(directory.begin, directory.bytes);
  std::vector<ZipMember> members;
  for (std::uint64_t i = 0; i < directory.members; ++i) {
    if (rest.size() < kCentralBytes || at<std::uint32_t>(rest, 0) != kCentral)
      return refused("entry " + std::to_string(i) + " of the directory is damaged");
    const std::size_t name = at<std::uint16_t>(rest, 28), extra = at<std::uint16_t>(rest, 30),
                      comment = at<std::uint16_t>(rest, 32);
    if (kCentralBytes + name + extra + comment > rest.size())
      return refused("entry " + std::to_string(i) + " of the directory is truncated");
    FEEDLINE_TRY(members.emplace_back(), member_in(archive, rest, name, extra));
    rest = rest.subspan(kCentralBytes + name + extra + comment);
  }
  return members;
}

Result<void> inflate_member(const ZipMember& member, std::span<std::byte> out) {
  constexpr std::size_t kMost = 1U << 30;  // zlib's counters are 32 bits wide
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return internal_error("zlib cannot be used");
  Bytes in = member.stored;
  std::span<std::byte> room = out;
  int status = Z_OK;
  while (status == Z_OK) {
    const std::size_t offered = std::min(in.size(), kMost), free = std::min(room.size(), kMost);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
    stream.avail_in = static_cast<uInt>(offered);
    std::byte none{};  // a stream may end when no room is left
    stream.next_out = reinterpret_cast<Bytef*>(free > 0 ? room.data() : &none);
    stream.avail_out = static_cast<uInt>(free > 0 ? free : 1);
    const uInt room_before = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t written = room_before - stream.avail_out;
    if (written > free) status = Z_BUF_ERROR;  // longer than the declared size
    in = in.subspan(offered - stream.avail_in);
    room = room.subspan(std::min(written, free));
  }
  inflateEnd(&stream);
  if (status == Z_STREAM_END && room.empty()) return {};
  return refused("the member '" + member.name + "' cannot be decompressed completely: the file is damaged");
}

Result<std::size_t> inflate_front(const ZipMember& member, std::span<std::byte> out) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return internal_error("zlib cannot be used");
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(member.stored.data()));
  stream.avail_in = static_cast<uInt>(std::min(member.stored.size(), std::size_t{1} << 30));  // enough for any header
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = out.empty() ? Z_OK : inflate(&stream, Z_SYNC_FLUSH);
  const std::size_t bytes = out.size() - stream.avail_out;
  inflateEnd(&stream);
  if (status == Z_OK || status == Z_STREAM_END) return bytes;
  return refused("the member '" + member.name + "' cannot be decompressed: the file is damaged");
}

Result<void> check_sum(const ZipMember& member, Bytes plain) {
  constexpr std::size_t kMost = 1U << 30;
  uLong sum = crc32(0, nullptr, 0);
  while (!plain.empty()) {
    const Bytes some = plain.first(std::min(plain.size(), kMost));
    sum = crc32(sum, reinterpret_cast<const Bytef*>(some.data()), static_cast<uInt>(some.size()));
    plain = plain.subspan(some.size());
  }
  if (sum == member.crc) return {};
  return refused("the member '" + member.name + "' is damaged: its checksum is wrong");
}

}  // namespace feedline::format
