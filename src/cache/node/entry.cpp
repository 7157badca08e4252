// SPDX-License-Identifier: Apache-2.0
#include "cache/node/entry.h"

#include "cache/checksum.h"
#include "cache/frame.h"

namespace feedline::cache {
namespace {

constexpr FrameKind kKind{0x7972'746e'6563'6c66, 1};  // "flcentry"
constexpr std::size_t kNumbers = 6;

std::uint64_t in_pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

std::string entry_name(const std::string& object, const storage::Version& version) {
  const std::string whole = std::to_string(version.bytes) + " " + std::to_string(version.mtime_ns) + " " +
                            std::to_string(version.tag) + " " + object;
  const auto bytes = std::as_bytes(std::span(whole));
  return hex_of(xxh3(bytes)) + hex_of(xxh3(bytes, 1));
}

std::uint64_t disk_bytes(std::uint64_t object_bytes) { return in_pages(object_bytes) + kPage; }

std::span<std::byte> write_entry(const Entry& entry, memory::ByteBuffer& buffer) {
  FrameBuilder builder(kKind,
                       {entry.version.bytes, static_cast<std::uint64_t>(entry.version.mtime_ns), entry.version.tag,
                        entry.checksum, static_cast<std::uint64_t>(entry.made_ns), entry.object.size()});
  builder.add(entry.object);
  return builder.write(buffer);
}

std::optional<Entry> read_entry(std::span<const std::byte> file) {
  if (!is_undamaged(file)) return {};
  FrameReader reader(file, kKind, kNumbers);
  const auto name = reader.take<char>(reader.count(5));
  if (!reader.is_whole()) return {};
  return Entry{std::string(name.begin(), name.end()),
               {reader.number(0), static_cast<std::int64_t>(reader.number(1)), reader.number(2)},
               reader.number(3),
               static_cast<std::int64_t>(reader.number(4))};
}

}  // namespace feedline::cache
