// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/lmdb_walk.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "format/lmdb/page_reader.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint16_t kDeepest = 32;  // liblmdb's own limit

// Compares keys in the same way as liblmdb for a database with these flags.
bool is_before(std::string_view a, std::string_view b, std::uint16_t flags) {
  const auto less = [](char x, char y) { return static_cast<unsigned char>(x) < static_cast<unsigned char>(y); };
  if ((flags & (kReverseKeys | kNumberKeys)) == 0) return a < b;  // std::string_view compares unsigned bytes
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend(), less);
}

class Walker {
 public:
  Walker(const storage::Reader& reader, std::uint64_t bytes, const std::string& shard, const LmdbMeta& meta,
         bool is_remote, Findings& findings)
      : pages_(reader, meta.page_bytes, is_remote),
        meta_(meta),
        shard_(shard),
        findings_(findings),
        taken_(bytes / meta.page_bytes) {}

  struct Named {
    std::string name;
    LmdbRoot root;
  };

  Result<void> walk(const LmdbRoot& root) {
    flags_ = root.flags;
    named_.clear();
    table_ = {};
    seen_ = false;
    std::vector<std::uint64_t> level;
    const std::uint64_t wrong = wrong_;
    if (root.page == LmdbRoot::kNoPage) return check_entries(root);
    if (root.depth == 0 || root.depth > kDeepest)
      return report("damaged_page", {}, "the tree has " + std::to_string(root.depth) + " levels: the file is damaged"),
             Result<void>();
    if (claim(root.page, 1, "the root")) level.push_back(root.page);
    for (std::uint16_t depth = 1; depth < root.depth; ++depth) {
      std::vector<std::uint64_t> below;
      FEEDLINE_CHECK_OK(each_page(level, PageKind::kBranch, [&](const LmdbPage& page, std::uint64_t number) {
        return take_branch(page, number, below);
      }));
      level = std::move(below);
    }
    FEEDLINE_CHECK_OK(each_page(level, PageKind::kLeaf,
                                [&](const LmdbPage& page, std::uint64_t number) { return take_leaf(page, number); }));
    return wrong_ == wrong ? check_entries(root) : Result<void>();
  }

  const std::vector<Named>& named() const { return named_; }
  LmdbTable& table() { return table_; }
  void report(std::string_view code, std::optional<std::uint64_t> page, std::string text) {
    ++wrong_;
    std::optional<std::uint64_t> offset;
    if (page) offset = *page * meta_.page_bytes;
    findings_.add({code, Severity::kError, shard_, "", offset, std::move(text)});
  }

 private:
  // Marks pages as used, and rejects a page that is used twice, so that walking a damaged file ends.
  bool claim(std::uint64_t page, std::uint64_t count, const std::string& user) {
    const auto wrong = [&](const std::string& how) {
      report("damaged_page", page < taken_.size() ? std::optional(page) : std::nullopt,
             user + " refers to page " + std::to_string(page) + ", which " + how +
                 ": the file is damaged or truncated, or was copied during a write; copy it again with mdb_copy");
      return false;
    };
    if (page < 2) return wrong("is a meta page");
    if (page >= taken_.size() || count > taken_.size() - page) return wrong("is after the end of the file");
    if (page > meta_.last_page || count - 1 > meta_.last_page - page) return wrong("is not in use");
    for (std::uint64_t i = page; i < page + count; ++i)
      if (taken_[i]) return wrong("is used twice");
    for (std::uint64_t i = page; i < page + count; ++i) taken_[i] = true;
    return true;
  }

  template <typename Take>
  Result<void> each_page(std::span<const std::uint64_t> level, PageKind kind, Take&& take) {
    constexpr std::size_t kAtATime = 1024;  // 4 MiB of pages of the usual size, and enough for 32 parallel requests
    for (std::size_t begin = 0; begin < level.size(); begin += kAtATime) {
      const auto some = level.subspan(begin, std::min(kAtATime, level.size() - begin));
      FEEDLINE_CHECK_OK(pages_.read(some));
      for (std::size_t i = 0; i < some.size(); ++i) {
        const auto page = LmdbPage::of(pages_.page(i), some[i], kind);
        const std::expected<void, std::string> done = page ? take(*page, some[i]) : std::unexpected(page.error());
        if (!done)
          report("damaged_page", some[i],
                 "page " + std::to_string(some[i]) + " " + done.error() +
                     ": the file is damaged, or was copied during a write; copy it again with mdb_copy");
      }
    }
    return {};
  }

  std::expected<void, std::string> take_branch(const LmdbPage& page, std::uint64_t number,
                                               std::vector<std::uint64_t>& below) {
    for (std::size_t i = 0; i < page.nodes(); ++i) {
      const auto node = page.node(i);
      if (!node) return std::unexpected(node.error());
      if (claim(node->page, 1, "page " + std::to_string(number))) below.push_back(node->page);
    }
    return {};
  }

  std::expected<void, std::string> take_leaf(const LmdbPage& page, std::uint64_t number) {
    std::uint64_t first = meta_.page_bytes, bytes = 0;
    for (std::size_t i = 0; i < page.nodes(); ++i) {
      const auto node = page.node(i);
      if (!node) return std::unexpected(node.error());
      first = std::min<std::uint64_t>(first, node->at);
      bytes += bytes_of(*node);
      const std::string_view key(reinterpret_cast<const char*>(node->key.data()), node->key.size());
      if (key.empty()) return std::unexpected("has an empty key");
      if (seen_ && !is_before(last_key_, key, flags_)) return std::unexpected("has keys that are not in order");
      last_key_ = key;
      seen_ = true;
      if ((node->flags & kHasDuplicates) != 0) return std::unexpected("has several values for one key");
      if ((node->flags & kIsDatabase) != 0)
        named_.push_back({std::string(key), lmdb_root_in(node->value.first(kRootBytes))});
      else
        add(*node, key, number);
    }
    // liblmdb leaves no gaps between nodes, so this detects damaged sizes
    if (first + bytes != meta_.page_bytes)
      return std::unexpected("has nodes whose sizes do not add up to the page size");
    return {};
  }

  // Returns the size of a leaf node, including padding, since nodes begin at even offsets.
  static std::uint64_t bytes_of(const LmdbNode& node) {
    const bool has_pages = (node.flags & kOwnPages) != 0;
    const std::uint64_t value = has_pages ? sizeof(std::uint64_t) : node.value_bytes;
    return (kNodeHeaderBytes + node.key.size() + value + 1) & ~std::uint64_t{1};
  }

  void add(const LmdbNode& node, std::string_view key, std::uint64_t number) {
    std::uint64_t location = number * meta_.page_bytes + node.at;
    if ((node.flags & kOwnPages) != 0) {
      const std::uint64_t pages = (kPageHeaderBytes + node.value_bytes + meta_.page_bytes - 1) / meta_.page_bytes;
      if (!claim(node.page, pages, "the value of '" + std::string(key) + "'")) return;
      location = node.page * meta_.page_bytes | LmdbTable::kOnOwnPages;
    }
    table_.locations.push_back(location);
    table_.value_bytes.push_back(node.value_bytes);
    table_.keys += key;
    table_.key_ends.push_back(table_.keys.size());
  }

  Result<void> check_entries(const LmdbRoot& root) {
    const std::uint64_t found = table_.size() + named_.size();
    if (found != root.entries)
      report("entries_differ", {},
             "the database has " + std::to_string(root.entries) + " entries according to its root, but " +
                 std::to_string(found) + " according to its pages: the file is damaged, or was copied during a write");
    return {};
  }

  PageReader pages_;
  const LmdbMeta meta_;
  const std::string& shard_;
  Findings& findings_;
  std::vector<bool> taken_;
  std::uint16_t flags_ = 0;
  std::vector<Named> named_;
  LmdbTable table_;
  std::string last_key_;
  bool seen_ = false;
  std::uint64_t wrong_ = 0;
};

std::string names_of(const std::vector<Walker::Named>& named) {
  constexpr std::size_t kShown = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(kShown, named.size()); ++i)
    names.append(i == 0 ? "'" : ", '").append(named[i].name).append("'");
  return names + (named.size() > kShown ? " and others" : "");
}

bool has_duplicates(const LmdbRoot& root, Walker& walker) {
  if ((root.flags & kDuplicates) == 0) return false;
  walker.report("duplicate_keys", {},
                "the database may have several values per key (MDB_DUPSORT), but a field needs one value per sample; "
                "write it without this flag");
  return true;
}

}  // namespace

Result<LmdbWalk> walk_lmdb(const storage::Reader& reader, std::uint64_t bytes, const std::string& shard, bool is_remote,
                           Findings& findings) {
  FEEDLINE_TRY(const LmdbMeta meta, read_lmdb_meta(reader, bytes));
  Walker walker(reader, bytes, shard, meta, is_remote, findings);
  LmdbWalk found{meta, meta.main.flags, {}};
  if (has_duplicates(meta.main, walker)) return found;
  FEEDLINE_CHECK_OK(walker.walk(meta.main));
  if (!walker.named().empty()) {
    const auto named = walker.named();
    if (named.size() > 1 || walker.table().size() > 0) {
      walker.report("named_databases", {},
                    "the file contains the named databases " + names_of(named) +
                        ", but only one database per file is supported: copy one to a separate file");
      return found;
    }
    if (has_duplicates(named.front().root, walker)) return found;
    found.flags = named.front().root.flags;
    FEEDLINE_CHECK_OK(walker.walk(named.front().root));
    if (!walker.named().empty())
      walker.report("named_databases", {}, "the database '" + named.front().name + "' contains databases");
  }
  found.table = std::move(walker.table());
  return found;
}

}  // namespace feedline::format
