// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes Parquet files byte by byte for tests.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/crc.h"
#include "format/columnar/parquet/page_header.h"
#include "format/columnar/parquet/parquet_metadata.h"

namespace feedline::format {

inline std::string varint_text(std::uint64_t value) {
  std::string text;
  for (; value > 0x7F; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}
inline std::string zigzag_text(std::int64_t value) {
  return varint_text(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
}

// Writes a struct in the compact protocol. Requires: ascending ids.
class CompactWriter {
 public:
  CompactWriter& number(int id, std::int64_t value, int type = 5) {
    return head(id, type), text_ += zigzag_text(value), *this;
  }
  CompactWriter& text(int id, const std::string& value) {
    return head(id, 8), text_ += varint_text(value.size()) + value, *this;
  }
  CompactWriter& truth(int id, bool value) { return head(id, value ? 1 : 2), *this; }
  CompactWriter& structure(int id, const CompactWriter& inner) { return head(id, 12), text_ += inner.done(), *this; }
  CompactWriter& list(int id, const std::vector<CompactWriter>& items) {
    head(id, 9);
    text_ += items.size() < 15 ? std::string(1, static_cast<char>(items.size() << 4 | 12))
                               : '\xfc' + varint_text(items.size());
    for (const CompactWriter& item : items) text_ += item.done();
    return *this;
  }
  std::string done() const { return text_ + '\0'; }

 private:
  void head(int id, int type) {
    text_ += static_cast<char>((id - last_) << 4 | type);
    last_ = id;
  }
  std::string text_;
  int last_ = 0;
};

// A page in one column, with its levels as runs and its encoded values.
struct MadePage {
  std::int64_t values = 0, rows = 0;
  std::string repetition = {}, definition = {}, data = {};
  ParquetEncoding encoding = ParquetEncoding::kPlain;
  bool is_v2 = false, is_dictionary = false, has_crc = true;
  std::int64_t nulls = 0;
};

// Encodes each level as a separate run. `bits` is at most 8.
inline std::string runs_text(const std::vector<unsigned>& levels) {
  std::string text;
  for (const unsigned level : levels) text += varint_text(2) + static_cast<char>(level);
  return text;
}

struct MadeLeaf {
  std::vector<CompactWriter> nodes;  // schema nodes from below the root to the leaf
  ParquetType type = ParquetType::kInt64;
  std::vector<std::vector<MadePage>> groups = {};  // pages of each row group
  std::int64_t nulls = -1;
};

inline CompactWriter node_of(const std::string& name, int repetition, std::optional<ParquetType> type,
                             std::int64_t children = 0, std::optional<std::int64_t> converted = {},
                             std::int64_t type_bytes = 0) {
  CompactWriter node;
  if (type) node.number(1, static_cast<int>(*type));
  if (type_bytes > 0) node.number(2, type_bytes);
  node.number(3, repetition).text(4, name);
  if (children > 0) node.number(5, children);
  if (converted) node.number(6, *converted);
  return node;
}

class ParquetWriter {
 public:
  using Pack = std::function<std::string(const std::string&)>;
  struct Options {
    int codec = 0;
    Pack pack = nullptr;
    bool has_index = false;  // whether to write an OffsetIndex
    std::string features = {};
    std::size_t children = 0;  // children of the root; 0: one per leaf
  };

  static std::string write(const std::vector<MadeLeaf>& leaves, const std::vector<std::int64_t>& rows) {
    return write(leaves, rows, Options{});
  }
  static std::string write(const std::vector<MadeLeaf>& leaves, const std::vector<std::int64_t>& rows,
                           const Options& options) {
    std::string bytes = "PAR1";
    std::vector<CompactWriter> groups;
    std::int64_t all = 0;
    for (std::size_t group = 0; group < rows.size(); ++group) {
      std::vector<CompactWriter> chunks;
      for (const MadeLeaf& leaf : leaves) chunks.push_back(add_chunk(leaf, leaf.groups[group], options, bytes));
      groups.push_back(CompactWriter().list(1, chunks).number(2, 0, 6).number(3, rows[group], 6));
      all += rows[group];
    }
    std::vector<CompactWriter> schema{
        CompactWriter()
            .text(4, "schema")
            .number(5, static_cast<std::int64_t>(options.children > 0 ? options.children : leaves.size()))};
    for (const MadeLeaf& leaf : leaves) schema.insert(schema.end(), leaf.nodes.begin(), leaf.nodes.end());
    CompactWriter footer;
    footer.number(1, 2).list(2, schema).number(3, all, 6).list(4, groups);
    if (!options.features.empty()) footer.list(5, {CompactWriter().text(1, "huggingface").text(2, options.features)});
    const std::string text = footer.done();
    return bytes + text + u32(text.size()) + "PAR1";
  }

  static std::string u32(std::size_t value) {
    const auto number = static_cast<std::uint32_t>(value);
    return {reinterpret_cast<const char*>(&number), 4};
  }

 private:
  static std::string page_of(const MadePage& page, const Options& options, bool has_repetition, bool has_definition) {
    std::string levels, plain = page.data;
    if (page.is_v2) levels = page.repetition + page.definition;
    if (!page.is_v2 && !page.is_dictionary)
      plain = (has_repetition ? u32(page.repetition.size()) + page.repetition : "") +
              (has_definition ? u32(page.definition.size()) + page.definition : "") + plain;
    const std::string packed = levels + (options.pack ? options.pack(plain) : plain);
    CompactWriter header;
    header.number(1, page.is_dictionary ? 2
                     : page.is_v2       ? 3
                                        : 0)
        .number(2, static_cast<std::int64_t>(levels.size() + plain.size()))
        .number(3, static_cast<std::int64_t>(packed.size()));
    if (page.has_crc)
      header.number(4, static_cast<std::int32_t>(base::crc(base::CrcKind::k32, 0, std::as_bytes(std::span(packed)))));
    const auto encoding = static_cast<std::int64_t>(page.encoding);
    if (page.is_dictionary)
      header.structure(7, CompactWriter().number(1, page.values).number(2, encoding));
    else if (page.is_v2)
      header.structure(8, CompactWriter()
                              .number(1, page.values)
                              .number(2, page.nulls)
                              .number(3, page.rows)
                              .number(4, encoding)
                              .number(5, static_cast<std::int64_t>(page.definition.size()))
                              .number(6, static_cast<std::int64_t>(page.repetition.size()))
                              .truth(7, options.pack != nullptr));
    else
      header.structure(5, CompactWriter().number(1, page.values).number(2, encoding).number(3, 3).number(4, 3));
    return header.done() + packed;
  }

  static CompactWriter add_chunk(const MadeLeaf& leaf, const std::vector<MadePage>& pages, const Options& options,
                                 std::string& bytes) {
    const std::size_t begin = bytes.size();
    std::size_t data = 0;
    std::int64_t values = 0, rows = 0;
    std::vector<CompactWriter> locations;
    const auto has_level = [&](auto level) {
      return std::ranges::any_of(pages, [&](const MadePage& page) { return !(page.*level).empty(); });
    };
    const bool has_repetition = has_level(&MadePage::repetition), has_definition = has_level(&MadePage::definition);
    for (const MadePage& page : pages) {
      const std::size_t at = bytes.size();
      bytes += page_of(page, options, has_repetition, has_definition);
      if (page.is_dictionary) continue;
      if (data == 0) data = at;
      values += page.values;
      locations.push_back(CompactWriter()
                              .number(1, static_cast<std::int64_t>(at), 6)
                              .number(2, static_cast<std::int64_t>(bytes.size() - at))
                              .number(3, rows, 6));
      rows += page.rows;
    }
    CompactWriter column;
    column.number(1, static_cast<int>(leaf.type)).number(4, options.codec).number(5, values, 6);
    column.number(6, 0, 6).number(7, static_cast<std::int64_t>(bytes.size() - begin), 6);
    column.number(9, static_cast<std::int64_t>(data), 6);
    if (data != begin) column.number(11, static_cast<std::int64_t>(begin), 6);
    if (leaf.nulls >= 0) column.structure(12, CompactWriter().number(3, leaf.nulls, 6));
    CompactWriter chunk;
    chunk.number(2, 0, 6).structure(3, column);
    if (options.has_index) {
      const std::string index = CompactWriter().list(1, locations).done();
      chunk.number(4, static_cast<std::int64_t>(bytes.size()), 6).number(5, static_cast<std::int64_t>(index.size()));
      bytes += index;
    }
    return chunk;
  }
};

// Returns values in PLAIN encoding.
template <typename T>
std::string plain_text(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
inline std::string plain_bytes(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += ParquetWriter::u32(value.size()) + value;
  return text;
}

}  // namespace feedline::format
