// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/lmdb_page.h"

#include <array>
#include <bit>
#include <optional>
#include <string_view>

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;
using Unfit = std::unexpected<std::string>;

static_assert(std::endian::native == std::endian::little, "numbers are read in place");

constexpr std::uint32_t kMagic = 0xBEEFC0DE;
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kMagicAt = 16, kMagicAtOf32Bits = 12;
constexpr std::size_t kMagicAtOfVersion3 = 24;                        // the page header of LMDB 1.0 is longer
constexpr std::uint16_t kKinds = 0x6f;                                // the flags that specify the type of a page
constexpr std::uint64_t kSmallestPage = 256, kLargestPage = 1 << 15;  // liblmdb's own limits

std::unexpected<Error> refused(std::string what) { return data_error("lmdb: " + std::move(what), "format"); }

// Returns the kind of machine that wrote the file, or an empty string if this machine is of the same kind or the file
// is not an LMDB file.
std::string_view other_machine(Bytes head) {
  if (number_at<std::uint32_t>(head, kMagicAt) == std::byteswap(kMagic)) return "a big-endian machine";
  if (number_at<std::uint32_t>(head, kMagicAtOf32Bits) == kMagic) return "a machine of 32 bits";
  if (number_at<std::uint32_t>(head, kMagicAtOf32Bits) == std::byteswap(kMagic))
    return "a big-endian machine of 32 bits";
  return {};
}

bool is_version_3(Bytes head) { return number_at<std::uint32_t>(head, kMagicAtOfVersion3) == kMagic; }

Result<LmdbMeta> parse_meta(Bytes head, std::string_view which) {
  if (is_version_3(head))
    return refused(
        "the database has data version 3, of LMDB 1.0, but only version 1, of LMDB 0.9, is read: copy it with LMDB "
        "1.0's "
        "mdb_dump and LMDB 0.9's mdb_load, or write it with lmdb.open(..., lib_version=0)");
  if (number_at<std::uint32_t>(head, kMagicAt) != kMagic) {
    const std::string_view machine = other_machine(head);
    if (machine.empty())
      return refused("the " + std::string(which) + " is invalid: this is not an LMDB file, or it is damaged");
    return refused(
        "the database was written on " + std::string(machine) +
        ", whose files other machines cannot read: dump it there with mdb_dump, and load it here with mdb_load");
  }
  if (const auto version = number_at<std::uint32_t>(head, 20); version != kVersion)
    return refused("version " + std::to_string(version) +
                   " of the file format, but only version 1, of liblmdb 0.9, is supported");
  const auto kind = static_cast<std::uint16_t>(number_at<std::uint16_t>(head, 10) & kKinds);
  if (kind != static_cast<std::uint16_t>(PageKind::kMeta)) return refused("the " + std::string(which) + " is damaged");
  LmdbMeta meta;
  meta.page_bytes = number_at<std::uint32_t>(head, 40);
  meta.main = lmdb_root_in(head.subspan(88, kRootBytes));
  meta.last_page = number_at<std::uint64_t>(head, 136);
  meta.transaction = number_at<std::uint64_t>(head, 144);
  if (!std::has_single_bit(meta.page_bytes) || meta.page_bytes < kSmallestPage || meta.page_bytes > kLargestPage)
    return refused("the " + std::string(which) + " is damaged: pages of " + std::to_string(meta.page_bytes) + " bytes");
  return meta;
}

Result<LmdbMeta> read_one(const storage::Reader& reader, std::uint64_t offset, std::string_view which) {
  std::array<std::byte, kMetaBytes> head;
  FEEDLINE_TRY(const std::size_t got, reader.read_at(offset, head));
  if (got < head.size())
    return refused("the file ends within its " + std::string(which) + ": it is truncated, or not an LMDB file");
  return parse_meta(head, which);
}

}  // namespace

bool is_lmdb(Bytes head) {
  return head.size() >= kMetaBytes &&
         (number_at<std::uint32_t>(head, kMagicAt) == kMagic || is_version_3(head) || !other_machine(head).empty());
}

Result<LmdbMeta> read_lmdb_meta(const storage::Reader& reader, std::uint64_t bytes) {
  FEEDLINE_TRY(const LmdbMeta first, read_one(reader, 0, "first meta page"));
  // A file with one damaged meta page is rejected, as in liblmdb, because that page may be the newer one.
  FEEDLINE_TRY(const LmdbMeta second, read_one(reader, first.page_bytes, "second meta page"));
  if (second.page_bytes != first.page_bytes)
    return refused("the meta pages have different page sizes: the file is damaged");
  if (bytes < 2 * first.page_bytes) return refused("the file ends within its meta pages: it is truncated");
  return second.transaction > first.transaction ? second : first;
}

LmdbRoot lmdb_root_in(Bytes bytes) {
  return {number_at<std::uint16_t>(bytes, 4), number_at<std::uint16_t>(bytes, 6), number_at<std::uint64_t>(bytes, 32),
          number_at<std::uint64_t>(bytes, 40)};
}

std::expected<LmdbPage, std::string> LmdbPage::of(Bytes bytes, std::uint64_t number, PageKind kind) {
  if (const auto own = number_at<std::uint64_t>(bytes, 0); own != number)
    return Unfit("has the page number " + std::to_string(own));
  const auto is = static_cast<std::uint16_t>(number_at<std::uint16_t>(bytes, 10) & kKinds);
  if (is != static_cast<std::uint16_t>(kind))
    return Unfit("has the kind " + std::to_string(is) + ", but a " + (kind == PageKind::kLeaf ? "leaf" : "branch") +
                 " was expected");
  const std::size_t end = number_at<std::uint16_t>(bytes, 12), begin = number_at<std::uint16_t>(bytes, 14);
  if (end < kPageHeaderBytes || end > begin || begin > bytes.size() || end % 2 != 0)
    return Unfit("has nodes outside the page");
  LmdbPage page(bytes, kind);
  page.nodes_ = (end - kPageHeaderBytes) / 2;
  return page;
}

std::expected<LmdbNode, std::string> LmdbPage::node(std::size_t i) const {
  LmdbNode node;
  node.at = number_at<std::uint16_t>(bytes_, kPageHeaderBytes + 2 * i);
  if (node.at < kPageHeaderBytes + 2 * nodes_ || node.at + kNodeHeaderBytes > bytes_.size())
    return Unfit("has a node outside the page");
  const Bytes rest = bytes_.subspan(node.at);
  const auto low = number_at<std::uint32_t>(rest, 0);
  const auto flags = number_at<std::uint16_t>(rest, 4);
  const std::size_t key_bytes = number_at<std::uint16_t>(rest, 6);
  if (kNodeHeaderBytes + key_bytes > rest.size()) return Unfit("has a key that extends beyond the page");
  node.key = rest.subspan(kNodeHeaderBytes, key_bytes);
  const Bytes payload = rest.subspan(kNodeHeaderBytes + key_bytes);
  if (kind_ == PageKind::kBranch) {
    node.page = low | std::uint64_t{flags} << 32;
    return node;
  }
  node.flags = flags;
  node.value_bytes = low;
  if ((flags & ~(kOwnPages | kIsDatabase | kHasDuplicates)) != 0) return Unfit("has a node of an unknown kind");
  const std::size_t stored = (flags & kOwnPages) != 0 ? sizeof(std::uint64_t) : low;
  if (stored > payload.size()) return Unfit("has a value that extends beyond the page");
  if ((flags & kIsDatabase) != 0 && (stored < kRootBytes || (flags & kOwnPages) != 0))
    return Unfit("has an invalid database record");
  if ((flags & kOwnPages) != 0)
    node.page = number_at<std::uint64_t>(payload, 0);
  else
    node.value = payload.first(low);
  return node;
}

bool begins_value(Bytes header, std::uint64_t number, std::uint64_t pages) {
  return header.size() >= kPageHeaderBytes && number_at<std::uint64_t>(header, 0) == number &&
         (number_at<std::uint16_t>(header, 10) & kKinds) == static_cast<std::uint16_t>(PageKind::kOverflow) &&
         number_at<std::uint32_t>(header, 12) >= pages;
}

}  // namespace feedline::format
