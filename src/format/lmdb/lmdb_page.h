// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pages of an LMDB file of data version 1, as written by liblmdb on 64-bit little-endian machines. All pages have
// the same size, and page N begins at N times this size.
//
//     page   0  8      its number
//           10  2      kind: branch 1, leaf 2, overflow 4, meta 8
//           12  2      end of the list of nodes; for overflow pages, 4: number of consecutive pages that share this header
//           14  2      begin of the nodes
//           16  2 x n  offset of each node, sorted by key
//     meta  16  4      0xBEEFC0DE, in pages 0 and 1; the page with the higher transaction is current
//           20  4      version
//           40  48     root of the free list, whose first 4 bytes are the page size
//           88  48     root of the main database
//          136  8      last page in use
//          144  8      transaction
//     root   4  2      flags: 2 keys are compared from their ends, 4 several values per key, 8 keys are integers
//            6  2      levels of pages
//           32  8      entries
//           40  8      top page; all ones: none
//     node   0  4      bytes of the value; in a branch the lower bits of a page's number
//            4  2      flags: 1 the value has its own pages, 2 it is the root of a database, 4 it is several values; in
//                      a branch the upper bits
//            6  2      bytes of the key
//            8  k      the key
//               n      the value; or 8: its first page, in which it follows the header
//
// Source: libraries/liblmdb/mdb.c (MDB_page, MDB_meta, MDB_db, MDB_node).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <span>
#include <string>

#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::format {

inline constexpr std::size_t kPageHeaderBytes = 16;
inline constexpr std::size_t kNodeHeaderBytes = 8;
inline constexpr std::size_t kMetaBytes = 152;
inline constexpr std::size_t kRootBytes = 48;

enum class PageKind : std::uint16_t { kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8 };
enum NodeFlag : std::uint16_t { kOwnPages = 1, kIsDatabase = 2, kHasDuplicates = 4 };
enum RootFlag : std::uint16_t { kReverseKeys = 2, kDuplicates = 4, kNumberKeys = 8 };

struct LmdbRoot {
  static constexpr std::uint64_t kNoPage = ~std::uint64_t{0};
  std::uint16_t flags = 0;
  std::uint16_t depth = 0;
  std::uint64_t entries = 0;
  std::uint64_t page = kNoPage;
};

struct LmdbMeta {
  std::uint64_t page_bytes = 0;
  LmdbRoot main;
  std::uint64_t last_page = 0;
  std::uint64_t transaction = 0;
};

// Returns whether `head`, the first kMetaBytes bytes of a file, is the head of an LMDB file from any kind of machine.
bool is_lmdb(std::span<const std::byte> head);
// Parses the newer meta page of a file of this size. Fails with kData if the file is damaged, is not an LMDB file, or
// is from a different version or kind of machine.
Result<LmdbMeta> read_lmdb_meta(const storage::Reader& reader, std::uint64_t bytes);
// Requires: kRootBytes bytes.
LmdbRoot lmdb_root_in(std::span<const std::byte> bytes);

struct LmdbNode {
  std::size_t at = 0;  // offset in its page
  std::uint16_t flags = 0;
  std::uint64_t page = 0;         // in a branch: the page below; with kOwnPages: the value's first page
  std::uint32_t value_bytes = 0;  // unused in a branch
  std::span<const std::byte> key;
  std::span<const std::byte> value;  // offset in the node
};

// A branch or leaf page. The bytes of the page must outlive this object.
class LmdbPage {
 public:
  // Error messages complete a sentence about the page.
  static std::expected<LmdbPage, std::string> of(std::span<const std::byte> bytes, std::uint64_t number, PageKind kind);
  std::size_t nodes() const { return nodes_; }
  // Requires: i < nodes().
  std::expected<LmdbNode, std::string> node(std::size_t i) const;

 private:
  LmdbPage(std::span<const std::byte> bytes, PageKind kind) : bytes_(bytes), kind_(kind) {}

  std::span<const std::byte> bytes_;
  PageKind kind_;
  std::size_t nodes_ = 0;
};

// Returns whether this is the header of the first page of a value with at least `pages` pages.
bool begins_value(std::span<const std::byte> header, std::uint64_t number, std::uint64_t pages);

// Reads an unaligned number. Requires: the number is inside `bytes`.
template <typename Number>
Number number_at(std::span<const std::byte> bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

}  // namespace feedline::format
