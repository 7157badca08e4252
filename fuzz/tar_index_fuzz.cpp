// SPDX-License-Identifier: Apache-2.0

// Any bytes as files next to a tar shard: DALI's and Energon's indexes, and stored parts of the shard. No crash, no
// read out of bounds. Accepted members are inside the shard, and samples are in ascending order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "format/index/shard_parts.h"
#include "format/tar/listed_members.h"
#include "memory/record.h"

using namespace feedline;

namespace {

constexpr std::uint64_t kShardBytes = 65'536;

void check_dali(std::string_view text) {
  const auto listed = format::parse_dali_index(text, kShardBytes);
  if (!listed) return FEEDLINE_CHECK(!listed.error().empty());
  FEEDLINE_CHECK(std::ranges::is_sorted(listed->first_members));
  FEEDLINE_CHECK(listed->first_members.empty() || listed->first_members.back() < listed->members.size());
  for (const format::ListedMember& member : listed->members) {
    FEEDLINE_CHECK(member.offset >= format::kBlockBytes && member.offset <= kShardBytes);
    FEEDLINE_CHECK(member.bytes <= kShardBytes - member.offset);
    FEEDLINE_CHECK(!member.extension.empty() && member.name.empty() != listed->has_names);
  }
}

void check_energon(std::string_view bytes) {
  const auto begins = format::parse_energon_index(bytes, kShardBytes);
  if (!begins) return FEEDLINE_CHECK(!begins.error().empty());
  FEEDLINE_CHECK(begins->size() >= 2 && begins->back() <= kShardBytes);
  FEEDLINE_CHECK(std::ranges::is_sorted(*begins) && std::ranges::adjacent_find(*begins) == begins->end());
}

std::optional<format::ShardParts> parsed(std::span<const std::byte> file) {
  memory::ByteBuffer buffer;
  std::ranges::copy(file, buffer.resize(file.size()).begin());
  return format::ShardParts::parse(std::move(buffer), file.size(), {});
}

void check_parts(std::span<const std::byte> bytes) {
  if (const auto parts = parsed(bytes))
    for (std::uint64_t i = 0; i < parts->size(); ++i) FEEDLINE_CHECK(!parts->part(i).bytes.empty());
  // two parts of these bytes, as they are stored
  const std::size_t half = bytes.size() / 2;
  if (half == 0) return;
  const format::ShardParts::Part own[] = {{half, bytes.first(half)}, {3 * half, bytes.subspan(half)}};
  const std::string_view note(reinterpret_cast<const char*>(bytes.data()), half);
  const auto built = format::ShardParts::build(own, {kShardBytes + 4 * bytes.size(), 1, 2}, note);
  const auto again = parsed(built.file_bytes());
  FEEDLINE_CHECK(again && again->version() == built.version() && again->size() == 2 && again->note() == note);
  for (const auto& part : own) {
    const auto found = again->find(part.offset, part.bytes.size());
    FEEDLINE_CHECK(found && std::ranges::equal(*found, part.bytes));
    FEEDLINE_CHECK(!again->find(part.offset, part.bytes.size() + 1));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  check_dali(text);
  check_energon(text);
  if (!text.empty()) check_parts(std::as_bytes(std::span(data, bytes)));
  return 0;
}
