// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes LMDB files byte by byte for tests, as if all entries had been written in one transaction.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/lmdb/lmdb_page.h"

namespace feedline::format {

class LmdbWriter {
 public:
  // `nodes_a_page` is the maximum number of nodes in a leaf or branch, to create deep trees with few entries.
  explicit LmdbWriter(std::size_t page_bytes = 4096, std::size_t nodes_a_page = 1000)
      : page_bytes_(page_bytes), most_nodes_(nodes_a_page) {}

  // An entry of the main database, or of a named database that add_database() adds to another.
  struct Entry {
    std::string key, value;
    std::uint16_t flags = 0;
  };
  // Writes the tree of a database and returns its root. Requires: entries are sorted by key according to the flags.
  LmdbRoot add_tree(const std::vector<Entry>& entries, std::uint16_t flags = 0) {
    LmdbRoot root{flags, 0, entries.size(), LmdbRoot::kNoPage};
    std::vector<std::pair<std::string, std::uint64_t>> level;  // first key and page
    Nodes nodes;
    std::string first;
    const auto finish = [&] {
      if (nodes.all.empty()) return;
      level.emplace_back(first, add_page(nodes, PageKind::kLeaf));
      nodes = {};
    };
    for (const Entry& entry : entries) {
      std::string node = leaf_node(entry);
      if (!fits(nodes, node)) finish();
      if (nodes.all.empty()) first = entry.key;
      nodes.add(std::move(node));
    }
    finish();
    root.depth = level.empty() ? 0 : 1;
    for (; level.size() > 1; ++root.depth) level = add_level(level);
    if (!level.empty()) root.page = level.front().second;
    return root;
  }
  static Entry database_entry(std::string key, const LmdbRoot& root) {
    return {std::move(key), root_bytes(root, 0), kIsDatabase};
  }

  // Returns the file for `main`, in which `transaction` is the newest transaction.
  std::string file(const LmdbRoot& main, std::uint64_t transaction = 2) const {
    const std::uint64_t last = 1 + body_.size() / page_bytes_;
    std::string file = meta_page(0, main, last, transaction % 2 == 0 ? transaction : transaction - 1);
    file += meta_page(1, main, last, transaction % 2 == 0 ? transaction - 1 : transaction);
    return file + body_;
  }
  std::string file_of(const std::vector<Entry>& entries) { return file(add_tree(entries)); }

 private:
  struct Nodes {
    std::vector<std::string> all;
    std::size_t bytes = 0;
    void add(std::string node) {
      bytes += node.size();
      all.push_back(std::move(node));
    }
  };

  template <typename Number>
  static std::string raw(Number number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
  }
  static std::string even(std::string node) { return node.size() % 2 == 0 ? node : node + '\0'; }
  std::uint64_t next_page() const { return 2 + body_.size() / page_bytes_; }
  bool fits(const Nodes& nodes, const std::string& node) const {
    return nodes.all.size() < most_nodes_ &&
           kPageHeaderBytes + 2 * (nodes.all.size() + 1) + nodes.bytes + node.size() <= page_bytes_;
  }
  static std::string header(std::uint64_t page, PageKind kind, std::uint16_t lower, std::uint16_t upper) {
    return raw(page) + raw(std::uint16_t{0}) + raw(static_cast<std::uint16_t>(kind)) + raw(lower) + raw(upper);
  }
  static std::string root_bytes(const LmdbRoot& root, std::uint32_t pad) {
    return raw(pad) + raw(root.flags) + raw(root.depth) + std::string(24, '\0') + raw(root.entries) + raw(root.page);
  }

  // Like liblmdb, stores a value on separate pages if its node would need half a page or more.
  std::string leaf_node(const Entry& entry) {
    const std::size_t most = ((page_bytes_ - kPageHeaderBytes) / 2 & ~std::size_t{1}) - 2;
    const std::string sizes = raw(static_cast<std::uint32_t>(entry.value.size()));
    const auto key_bytes = raw(static_cast<std::uint16_t>(entry.key.size()));
    if (kNodeHeaderBytes + entry.key.size() + entry.value.size() <= most)
      return even(sizes + raw(entry.flags) + key_bytes + entry.key + entry.value);
    const std::uint64_t page = next_page();
    const std::uint64_t pages = (kPageHeaderBytes + entry.value.size() + page_bytes_ - 1) / page_bytes_;
    std::string own =
        header(page, PageKind::kOverflow, static_cast<std::uint16_t>(pages), static_cast<std::uint16_t>(pages >> 16));
    own += entry.value;
    own.resize(pages * page_bytes_);
    body_ += own;
    return even(sizes + raw(static_cast<std::uint16_t>(kOwnPages)) + key_bytes + entry.key + raw(page));
  }

  std::uint64_t add_page(const Nodes& nodes, PageKind kind) {
    const std::uint64_t number = next_page();
    const std::size_t lower = kPageHeaderBytes + 2 * nodes.all.size(), upper = page_bytes_ - nodes.bytes;
    std::string page = header(number, kind, static_cast<std::uint16_t>(lower), static_cast<std::uint16_t>(upper));
    std::size_t at = page_bytes_;
    std::string list, packed;
    for (const std::string& node : nodes.all) {  // fills the page from its end
      at -= node.size();
      list += raw(static_cast<std::uint16_t>(at));
      packed.insert(0, node);
    }
    page += list;
    page.resize(upper);
    body_ += page + packed;
    return number;
  }

  using Level = std::vector<std::pair<std::string, std::uint64_t>>;
  Level add_level(const Level& below) {
    Level level;
    Nodes nodes;
    std::string first;
    const auto finish = [&] {
      if (!nodes.all.empty()) level.emplace_back(first, add_page(nodes, PageKind::kBranch));
      nodes = {};
    };
    for (const auto& [key, page] : below) {
      const auto node_of = [&, number = page](const std::string& own) {
        return even(raw(static_cast<std::uint32_t>(number)) + raw(static_cast<std::uint16_t>(number >> 32)) +
                    raw(static_cast<std::uint16_t>(own.size())) + own);
      };
      if (!fits(nodes, node_of(key))) finish();
      if (nodes.all.empty()) first = key;
      nodes.add(node_of(nodes.all.empty() ? "" : key));  // the first node has no key
    }
    finish();
    return level;
  }

  std::string meta_page(std::uint64_t number, const LmdbRoot& main, std::uint64_t last,
                        std::uint64_t transaction) const {
    std::string page = header(number, PageKind::kMeta, 0, 0);
    page +=
        raw(std::uint32_t{0xBEEFC0DE}) + raw(std::uint32_t{1}) + raw(std::uint64_t{0}) + raw(std::uint64_t{1 << 20});
    page += root_bytes({}, static_cast<std::uint32_t>(page_bytes_)) + root_bytes(main, 0);
    page += raw(last) + raw(transaction);
    page.resize(page_bytes_);
    return page;
  }

  const std::size_t page_bytes_, most_nodes_;
  std::string body_;  // pages from 2 on
};

}  // namespace feedline::format
