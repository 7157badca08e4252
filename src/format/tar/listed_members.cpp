// SPDX-License-Identifier: Apache-2.0
#include "format/tar/listed_members.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "format/sources/sample_name.h"

namespace feedline::format {
namespace {

constexpr std::uint64_t kMostIndexBytes = std::uint64_t{1} << 30U;
constexpr std::uint64_t kLongestEnd = 22 * kBlockBytes;  // an end marker and a zero-filled record of GNU tar

std::uint64_t to_block(std::uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

// Removes the text up to the next space from the front.
std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::optional<std::uint64_t> number_in(std::string_view word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) return {};
  return value;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Like DALI's wds2idx, returns the name up to its first dot, ignoring a leading dot.
std::string dali_name(const std::string& shard) {
  const std::size_t begin = shard.rfind('/') + 1;  // npos + 1 is 0
  return shard.substr(0, shard.find('.', begin + 1)) + ".idx";
}
std::string energon_name(const std::string& shard) { return shard + ".idx"; }

std::optional<std::string_view> read_text(const storage::Storage& storage, const std::string& name,
                                          std::uint64_t shard_bytes, memory::ByteBuffer& room) {
  const auto file = storage.read_all(name, room, std::min(kMostIndexBytes, 4096 + shard_bytes));
  if (!file) return {};
  return std::string_view(reinterpret_cast<const char*>(file->data()), file->size());
}

// Returns an error message if some blocks do not belong to a member, or an empty string if all do.
std::string gaps(const ListedMembers& listed, const storage::Reader& reader, std::uint64_t shard_bytes) {
  std::uint64_t end = 0;
  for (const ListedMember& one : listed.members) {
    if (one.offset != end + kBlockBytes)
      return "the member '" + one.name + "' begins at byte " + std::to_string(one.offset) +
             ", but the preceding member ends at " + std::to_string(end) + ": the bytes between them are not listed";
    end = one.offset + to_block(one.bytes);
  }
  std::array<std::byte, kLongestEnd> tail{};
  if (shard_bytes < end + 2 * kBlockBytes || shard_bytes - end > tail.size())
    return "the listed members end at byte " + std::to_string(end) + ", but the shard ends at " +
           std::to_string(shard_bytes);
  const auto rest = std::span(tail).first(static_cast<std::size_t>(shard_bytes - end));
  const auto got = reader.read_at(end, rest);
  if (got && *got == rest.size() && std::ranges::all_of(rest, [](std::byte b) { return b == std::byte{0}; })) return {};
  return "the shard has no end marker at byte " + std::to_string(end) + ", after its last member";
}

std::string compare_some(const storage::Reader& reader, const ShardIndex& index, bool is_remote) {
  const std::uint64_t last = index.samples() - 1;
  const std::uint64_t looks = is_remote ? 2 : 16;  // number of reads: each is a request, or takes microseconds
  for (std::uint64_t i = 0; i < looks; ++i) {
    const std::uint64_t sample = last * i / (looks - 1);
    const auto member = index.member(index.first_member(sample));
    std::array<std::byte, kBlockBytes> block;
    const auto got = reader.read_at(member.offset - kBlockBytes, block);
    if (!got || *got < block.size()) return "the shard ends before sample " + std::to_string(sample);
    if (std::string why = differs(block, index.key(sample), index.extension(member.extension), member.bytes);
        !why.empty())
      return why + " at byte " + std::to_string(member.offset - kBlockBytes);
  }
  return {};
}

// Builds the same index as a scan of the shard. Returns a message if a scan would report a finding, so that a scan is
// necessary.
std::expected<ShardIndex, std::string> grouped(const ListedMembers& listed, const storage::Version& version) {
  ShardIndexBuilder builder;
  std::unordered_set<std::string_view> keys;
  std::string_view key;
  for (const ListedMember& one : listed.members) {
    const auto name = split_sample_name(one.name);
    if (!name || is_reserved_name(one.name)) return std::unexpected("'" + one.name + "' is not a file of a sample");
    const std::string extension = to_lower(name->extension);
    if (extension.starts_with("__"))
      return std::unexpected("'" + one.name + "' marks its sample and is not one of its files");
    if (keys.empty() || name->key != key) {
      if (!keys.insert(name->key).second) return std::unexpected("sample '" + std::string(name->key) + "' comes twice");
      key = name->key;
      builder.add_sample(key);
    }
    if (builder.last_sample_has(extension)) return std::unexpected("'" + one.name + "' comes twice");
    builder.add_member(extension, one.offset, one.bytes);
  }
  if (keys.empty()) return std::unexpected("the index has no samples");
  return builder.build(version);
}

// Builds the shard's index from DALI's index, or returns the reason why DALI's index does not match.
std::expected<ShardIndex, std::string> index_by(const ListedMembers& listed, const ShardFile& shard,
                                                const storage::Reader& reader, bool is_remote) {
  if (std::string why = gaps(listed, reader, shard.version.bytes); !why.empty()) return std::unexpected(why);
  auto index = grouped(listed, shard.version);
  if (!index) return index;
  if (std::string why = compare_some(reader, *index, is_remote); !why.empty()) return std::unexpected(why);
  return index;
}

// Returns the difference between DALI's index and a scan, or an empty string.
std::string compare_members(const ListedMembers& listed, const ShardIndex& scanned) {
  if (listed.members.size() != scanned.members())
    return "the index has " + std::to_string(listed.members.size()) + " files, but the shard has " +
           std::to_string(scanned.members());
  for (std::size_t i = 0; i < listed.members.size(); ++i) {
    const ListedMember& said = listed.members[i];
    const auto found = scanned.member(i);
    if (said.offset != found.offset || said.bytes != found.bytes ||
        to_lower(said.extension) != scanned.extension(found.extension))
      return "listed file " + std::to_string(i) + " (." + said.extension + ", " + std::to_string(said.bytes) +
             " bytes at " + std::to_string(said.offset) + ") differs in the shard (." +
             std::string(scanned.extension(found.extension)) + ", " + std::to_string(found.bytes) + " bytes at " +
             std::to_string(found.offset) + ")";
  }
  return {};
}

// Returns whether the end marker of the archive begins at this offset.
bool is_end_mark(const storage::Storage& storage, const ShardFile& shard, std::uint64_t offset) {
  const auto reader = storage.open(shard.path, storage::Access::kRead);
  std::array<std::byte, kBlockBytes> block;
  if (!reader) return false;
  const auto got = (*reader)->read_at(offset, block);
  return got && *got == block.size() && is_zero(block);
}

// Returns the difference between Energon's index and a scan, or an empty string. Since a header may be longer than a
// block, its exact beginning is unknown. The last number is the end of the last sample, including members after it that
// do not belong to a sample, such as README.
std::string compare_begins(const std::vector<std::uint64_t>& begins, const storage::Storage& storage,
                           const ShardFile& shard, const ShardIndex& scanned) {
  if (begins.size() - 1 != scanned.samples())
    return "the index has " + std::to_string(begins.size() - 1) + " samples, but the shard has " +
           std::to_string(scanned.samples());
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < scanned.samples(); ++i) {
    const auto first = scanned.member(scanned.first_member(i));
    const auto last = scanned.member(scanned.first_member(i + 1) - 1);
    if (first.offset < before || last.offset < first.offset) return {};  // hard links, whose data is stored elsewhere
    if (begins[i] < before || begins[i] + kBlockBytes > first.offset)
      return "listed sample " + std::to_string(i) + " begins at byte " + std::to_string(begins[i]) +
             ", but in the shard its first file is at byte " + std::to_string(first.offset);
    before = last.offset + to_block(last.bytes);
  }
  const bool is_end = begins.back() == before || (begins.back() > before && is_end_mark(storage, shard, begins.back()));
  return is_end ? ""
                : "the index ends at byte " + std::to_string(begins.back()) + ", but the last sample ends at " +
                      std::to_string(before);
}

}  // namespace

bool is_dali_index(std::string_view text) { return text.starts_with("v1."); }

std::expected<ListedMembers, std::string> parse_dali_index(std::string_view text, std::uint64_t shard_bytes) {
  std::string_view head = take_line(text);
  const std::string_view version = take_word(head);
  const auto samples = number_in(head);
  if ((version != "v1.1" && version != "v1.2") || !samples)
    return std::unexpected("the index does not begin with \"v1.1\" or \"v1.2\" and a number of samples");
  ListedMembers listed{version == "v1.2", {}, {}};
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const auto wrong = [&](const std::string& how) {
      return std::unexpected("line " + std::to_string(listed.first_members.size() + 1) + " " + how);
    };
    listed.first_members.push_back(listed.members.size());
    if (line.empty()) return wrong("is empty");
    while (!line.empty()) {
      ListedMember member;
      member.extension = take_word(line);
      const auto offset = number_in(take_word(line)), bytes = number_in(take_word(line));
      if (listed.has_names) member.name = take_word(line);
      if (member.extension.empty() || !offset || !bytes || (listed.has_names && member.name.empty()))
        return wrong(listed.has_names ? "does not list \"EXTENSION OFFSET BYTES NAME\" for each file"
                                      : "does not list \"EXTENSION OFFSET BYTES\" for each file");
      if (*offset < kBlockBytes || *offset > shard_bytes || *bytes > shard_bytes - *offset)
        return wrong("has a file outside the shard's " + std::to_string(shard_bytes) + " bytes");
      member.offset = *offset;
      member.bytes = *bytes;
      listed.members.push_back(std::move(member));
    }
  }
  if (listed.first_members.size() == *samples) return listed;
  return std::unexpected("the index begins with " + std::to_string(*samples) + " samples, but has " +
                         std::to_string(listed.first_members.size()));
}

std::expected<std::vector<std::uint64_t>, std::string> parse_energon_index(std::string_view bytes,
                                                                           std::uint64_t shard_bytes) {
  std::vector<std::uint64_t> begins(bytes.size() / sizeof(std::uint64_t));
  if (begins.size() * sizeof(std::uint64_t) != bytes.size() || begins.size() < 2)
    return std::unexpected("the index's " + std::to_string(bytes.size()) + " bytes are not a list of 64-bit offsets");
  std::memcpy(begins.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; i < begins.size(); ++i)
    if (begins[i] % kBlockBytes != 0 || begins[i] > shard_bytes || (i > 0 && begins[i] <= begins[i - 1]))
      return std::unexpected("listed sample " + std::to_string(i) + " is at byte " + std::to_string(begins[i]) +
                             ", which is impossible");
  return begins;
}

std::string differs(TarBlock block, std::string_view key, std::string_view extension, std::uint64_t bytes) {
  const std::string wanted =
      "'" + std::string(key) + "." + std::string(extension) + "' of " + std::to_string(bytes) + " bytes";
  const auto header = parse_header(block);
  if (!header) return "the shard has no header for " + wanted;
  const auto name = split_sample_name(header->name);
  const bool is_plain = header->type == '0' || header->type == '7';
  if (is_plain && header->bytes == bytes && name && name->key == key && to_lower(name->extension) == extension)
    return {};
  return "the shard has '" + header->name + "' of " + std::to_string(header->bytes) + " bytes instead of " + wanted;
}

ListedIndex find_listed_index(const storage::Storage& storage, const ShardFile& shard, const storage::Reader& reader) {
  constexpr std::uint64_t kWorthARequest = std::uint64_t{16} << 20U;  // smaller shards are scanned by fewer readers
  ListedIndex found;
  if (storage.is_remote() && shard.version.bytes < kWorthARequest) return found;
  memory::ByteBuffer room;
  const std::string path = dali_name(shard.name);
  const auto text = read_text(storage, path, shard.version.bytes, room);
  if (!text || !is_dali_index(*text)) return found;  // no index, or an index of a TFRecord file
  const auto listed = parse_dali_index(*text, shard.version.bytes);
  if (listed && !listed->has_names) return found;
  auto index = listed ? index_by(*listed, shard, reader, storage.is_remote()) : std::unexpected(listed.error());
  if (index) {
    found.index = std::move(*index);
    found.path = path;
  } else {
    found.not_fitting.push_back("the index '" + path +
                                "' does not belong to this shard and is not used: " + index.error());
  }
  return found;
}

void compare_listed_indexes(const storage::Storage& storage, const ShardFile& shard, const ShardIndex& scanned,
                            Findings& findings) {
  const auto report = [&](const std::string& path, const std::string& why) {
    if (!why.empty())
      findings.add(
          {"foreign_index",
           Severity::kWarning,
           shard.name,
           "",
           {},
           "the index '" + path + "' does not belong to this shard: " + why + "; remove it, or create it again"});
  };
  memory::ByteBuffer room;
  const std::uint64_t bytes = shard.version.bytes;
  if (const auto text = read_text(storage, dali_name(shard.name), bytes, room); text && is_dali_index(*text)) {
    const auto listed = parse_dali_index(*text, bytes);
    report(dali_name(shard.name), listed ? compare_members(*listed, scanned) : listed.error());
  }
  if (const auto text = read_text(storage, energon_name(shard.name), bytes, room); text && !is_dali_index(*text)) {
    const auto begins = parse_energon_index(*text, bytes);
    report(energon_name(shard.name), begins ? compare_begins(*begins, storage, shard, scanned) : begins.error());
  }
}

}  // namespace feedline::format
