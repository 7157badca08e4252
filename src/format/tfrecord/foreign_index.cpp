// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/foreign_index.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "format/tfrecord/record_frame.h"

namespace feedline::format {
namespace {

// Parses a number and removes it from the front of the text. Returns nullopt if there is none, or if it does not fit
// into 64 bits.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

struct Line {
  std::uint64_t offset, bytes;
};

std::optional<Line> parse_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const auto offset = take_number(line);
  if (!offset || !line.starts_with(' ')) return {};
  line.remove_prefix(1);
  const auto bytes = take_number(line);
  if (!bytes || !line.empty()) return {};
  return Line{*offset, *bytes};
}

// Returns the possible names of indexes for "x/train.tfrecord": extensions replace the shard's extension or are
// appended to it.
std::vector<std::string> index_names(const std::string& shard, bool is_remote) {
  const std::size_t slash = shard.rfind('/'), dot = shard.rfind('.');
  const bool has_end = dot != shard.npos && dot > 0 && (slash == shard.npos || dot > slash + 1);
  std::vector<std::string> names;
  for (const std::string_view end : {".tfindex", ".idx", ".index"}) {
    if (is_remote && end == ".index") break;  // each is a request, and only examples use this name
    names.push_back(shard + std::string(end));
    if (has_end) names.push_back(shard.substr(0, dot) + std::string(end));
  }
  return names;
}

// Returns the reason why a record in the index does not match the shard, or an empty string if the record's header
// matches.
std::string compare(const storage::Reader& reader, std::span<const std::uint64_t> ends, std::size_t record) {
  const std::uint64_t begin = record == 0 ? 0 : ends[record - 1];
  std::array<std::byte, kRecordHeaderBytes> header;
  const auto got = reader.read_at(begin, header);
  const auto length = got ? length_in_header(std::span(header).first(*got)) : std::nullopt;
  if (length && *length == ends[record] - begin - kRecordFrameBytes) return {};
  return "the shard does not have record " + std::to_string(record) + " at byte " + std::to_string(begin);
}

std::string compare_some(const storage::Reader& reader, std::span<const std::uint64_t> ends, bool is_remote) {
  if (ends.empty()) return {};
  const std::size_t last = ends.size() - 1;
  const std::size_t looks = is_remote ? 2 : 16;  // number of reads: each is a request, or takes microseconds
  for (std::size_t i = 0; i < looks; ++i)
    if (std::string wrong = compare(reader, ends, last * i / (looks - 1)); !wrong.empty()) return wrong;
  return {};
}

}  // namespace

std::expected<std::vector<std::uint64_t>, std::string> parse_foreign_index(std::string_view text,
                                                                           std::uint64_t shard_bytes) {
  std::vector<std::uint64_t> ends;
  std::uint64_t end = 0;
  const auto wrong = [&](const std::string& how) {
    return std::unexpected("line " + std::to_string(ends.size() + 1) + " " + how);
  };
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const auto line = parse_line(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
    if (!line) return wrong("is not \"OFFSET LENGTH\"");
    if (line->offset != end)
      return wrong("begins at byte " + std::to_string(line->offset) + ", but the record before ends at " +
                   std::to_string(end));
    if (line->bytes < kRecordFrameBytes) return wrong("has a record of " + std::to_string(line->bytes) + " bytes");
    if (end > shard_bytes || line->bytes > shard_bytes - end)
      return wrong("ends after the shard's " + std::to_string(shard_bytes) + " bytes");
    ends.push_back(end += line->bytes);
  }
  if (end == shard_bytes) return ends;
  return std::unexpected("the listed records end at byte " + std::to_string(end) + ", but the shard ends at " +
                         std::to_string(shard_bytes));
}

ForeignIndexes find_foreign_index(const storage::Storage& storage, const ShardFile& shard,
                                  const storage::Reader& reader) {
  // This limit is sufficient because a line has two numbers of at most 20 digits, and describes at least 16 bytes of
  // the shard.
  const std::uint64_t most = 4096 + 3 * shard.version.bytes;
  ForeignIndexes indexes;
  memory::ByteBuffer buffer;
  for (const std::string& name : index_names(shard.name, storage.is_remote())) {
    const auto file = storage.read_all(name, buffer, most);
    if (!file) continue;  // unreadable: Feedline builds its own index
    auto ends = parse_foreign_index({reinterpret_cast<const char*>(file->data()), file->size()}, shard.version.bytes);
    const std::string wrong = ends ? compare_some(reader, *ends, storage.is_remote()) : ends.error();
    if (wrong.empty()) {
      indexes.found = ForeignIndex{name, std::move(*ends)};
      break;
    }
    indexes.not_fitting.push_back("the index '" + name + "' does not belong to this shard and is not used: " + wrong);
  }
  return indexes;
}

}  // namespace feedline::format
