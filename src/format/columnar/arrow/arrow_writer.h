// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: writes Arrow files and streams byte by byte.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace feedline::format {

// Writes a FlatBuffer from front to back: each table is followed by the data that its fields refer to. Every field
// takes 8 bytes.
class FlatWriter {
 public:
  using Child = std::function<void(FlatWriter&)>;
  struct Field {
    std::size_t id = 0;
    std::uint64_t number = 0;
    Child child = nullptr;  // instead of the number
  };

  static std::string write(const Child& root) {
    FlatWriter writer;
    writer.put<std::uint32_t>(0);
    writer.align();
    root(writer);
    writer.patch(0, writer.root_);
    writer.align();
    return std::move(writer.bytes_);
  }

  // Writes the vtable and then the table. `slot` is the position at which the table's offset is stored.
  void table(const std::vector<Field>& fields, std::optional<std::size_t> slot = {}) {
    std::size_t most = 0;
    for (const Field& field : fields) most = std::max(most, field.id + 1);
    align();
    const std::size_t vtable = bytes_.size();
    put<std::uint16_t>(static_cast<std::uint16_t>(4 + 2 * most));
    put<std::uint16_t>(static_cast<std::uint16_t>(8 + 8 * fields.size()));
    std::vector<std::uint16_t> locations(most);
    for (std::size_t i = 0; i < fields.size(); ++i) locations[fields[i].id] = static_cast<std::uint16_t>(8 + 8 * i);
    for (const std::uint16_t location : locations) put(location);
    align();
    const std::size_t begin = bytes_.size();
    if (slot) patch(*slot, static_cast<std::uint32_t>(begin - *slot));
    if (root_ == 0) root_ = static_cast<std::uint32_t>(begin);
    put<std::int32_t>(static_cast<std::int32_t>(begin - vtable));
    put<std::uint32_t>(0);
    for (const Field& field : fields) put(field.number);
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (fields[i].child) {
        slot_ = begin + 8 + 8 * i;
        fields[i].child(*this);
      }
  }

  // Writes the data of a child, and stores its offset in the parent's slot.
  static Child table_of(std::vector<Field> fields) {
    return [fields](FlatWriter& out) { out.table(fields, out.slot_); };
  }
  static Child text(std::string value) {
    return [value](FlatWriter& out) {
      out.begin_vector(value.size());
      out.bytes_ += value + '\0';
    };
  }
  static Child tables(std::vector<std::vector<Field>> all) {
    return [all](FlatWriter& out) {
      out.begin_vector(all.size());
      const std::size_t first = out.bytes_.size();
      out.bytes_.resize(first + 4 * all.size());
      for (std::size_t i = 0; i < all.size(); ++i) out.table(all[i], first + 4 * i);
    };
  }
  static Child numbers(std::vector<std::uint64_t> all, std::size_t each) {
    return [all, each](FlatWriter& out) {
      out.bytes_.resize((out.bytes_.size() + 7) / 8 * 8 + 4);  // the elements are aligned to 8 bytes
      out.begin_vector(all.size() / each, false);
      for (const std::uint64_t number : all) out.put(number);
    };
  }

 private:
  template <typename T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void align() { bytes_.resize((bytes_.size() + 7) / 8 * 8); }
  void patch(std::size_t at, std::uint32_t value) { std::memcpy(bytes_.data() + at, &value, sizeof value); }
  void begin_vector(std::size_t size, bool aligned = true) {
    if (aligned) align();
    patch(slot_, static_cast<std::uint32_t>(bytes_.size() - slot_));
    put(static_cast<std::uint32_t>(size));
  }

  std::string bytes_;
  std::size_t slot_ = 0;
  std::uint32_t root_ = 0;
};

// A column in a batch: its type and its buffers.
struct MadeColumn {
  std::string name;
  std::uint8_t kind = 1;  // number in the union Type
  std::vector<FlatWriter::Field> type = {};
  std::uint64_t length = 0, nulls = 0;
  std::vector<std::string> buffers = {};
  std::vector<MadeColumn> children = {};
  std::optional<std::uint64_t> dictionary = {};  // 8-bit dictionary indices; `children` has the dictionary
  bool is_view = false;                          // for byte views: the message stores the number of data buffers
};

template <typename T>
std::string little(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Returns a validity bitmap, and stores the number of nulls.
inline std::string mask_of(const std::vector<bool>& there, std::uint64_t& nulls) {
  std::string mask((there.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < there.size(); ++i)
    if (there[i])
      mask[i / 8] = static_cast<char>(mask[i / 8] | 1 << i % 8);
    else
      ++nulls;
  return nulls == 0 ? std::string() : mask;
}

inline MadeColumn int64_column(std::string name, const std::vector<std::int64_t>& values,
                               const std::vector<bool>& there = {}) {
  MadeColumn made{std::move(name), 2, {{0, 64}, {1, 1}}, values.size()};
  std::string mask = there.empty() ? std::string() : mask_of(there, made.nulls);
  made.buffers = {std::move(mask), little(values)};
  return made;
}
inline MadeColumn float_column(std::string name, const std::vector<float>& values,
                               const std::vector<bool>& there = {}) {
  MadeColumn made{std::move(name), 3, {{0, 1}}, values.size()};
  std::string mask = there.empty() ? std::string() : mask_of(there, made.nulls);
  made.buffers = {std::move(mask), little(values)};
  return made;
}
// `kind` is 4 for bytes and 5 for text, or 19 and 20 with 64-bit offsets.
inline MadeColumn bytes_column(std::string name, std::uint8_t kind,
                               const std::vector<std::optional<std::string>>& values) {
  MadeColumn made{std::move(name), kind, {}, values.size()};
  std::vector<bool> there;
  std::vector<std::int64_t> ends{0};
  std::string all;
  for (const auto& value : values) {
    there.push_back(value.has_value());
    all += value.value_or("");
    ends.push_back(static_cast<std::int64_t>(all.size()));
  }
  std::vector<std::int32_t> narrow(ends.begin(), ends.end());
  made.buffers = {mask_of(there, made.nulls), kind >= 19 ? little(ends) : little(narrow), all};
  return made;
}
// Returns a view of a long value: its size, first bytes, buffer index and offset.
inline std::string view_of(std::int32_t bytes, std::int32_t buffer, std::int32_t offset) {
  return little(std::vector<std::int32_t>{bytes, 0, buffer, offset});
}
inline std::string short_view(const std::string& text) {
  std::string view = little(std::vector<std::int32_t>{static_cast<std::int32_t>(text.size())}) + text;
  view.resize(16);
  return view;
}
// `kind` is 23 for bytes and 24 for text.
inline MadeColumn view_column(std::string name, std::uint8_t kind, const std::vector<std::string>& views,
                              const std::vector<std::string>& buffers, const std::vector<bool>& there = {}) {
  MadeColumn made{std::move(name), kind, {}, views.size()};
  std::string all;
  for (const std::string& view : views) all += view;
  made.buffers = {there.empty() ? std::string() : mask_of(there, made.nulls), all};
  made.buffers.insert(made.buffers.end(), buffers.begin(), buffers.end());
  made.is_view = true;
  return made;
}
// `kind` is 25 for 32-bit offsets and sizes, and 26 for 64-bit ones.
template <typename T>
MadeColumn list_view_column(std::string name, std::uint8_t kind, const std::vector<T>& offsets,
                            const std::vector<T>& sizes, MadeColumn child) {
  MadeColumn made{std::move(name), kind, {}, offsets.size()};
  made.buffers = {"", little(offsets), little(sizes)};
  made.children.push_back(std::move(child));
  return made;
}
inline MadeColumn list_column(std::string name, const std::vector<std::int32_t>& offsets, MadeColumn child,
                              const std::vector<bool>& there = {}) {
  MadeColumn made{std::move(name), 12, {}, offsets.size() - 1};
  std::string mask = there.empty() ? std::string() : mask_of(there, made.nulls);
  made.buffers = {std::move(mask), little(offsets)};
  made.children.push_back(std::move(child));
  return made;
}
inline MadeColumn fixed_list_column(std::string name, std::uint64_t size, MadeColumn child) {
  MadeColumn made{std::move(name), 16, {{0, size}}, child.length / size};
  made.buffers = {""};
  made.children.push_back(std::move(child));
  return made;
}
inline MadeColumn struct_column(std::string name, std::vector<MadeColumn> children,
                                const std::vector<bool>& there = {}) {
  MadeColumn made{std::move(name), 13, {}, children.front().length};
  made.buffers = {there.empty() ? std::string() : mask_of(there, made.nulls)};
  made.children = std::move(children);
  return made;
}

using MadeBatch = std::vector<MadeColumn>;

// The messages of a stream, and their entries in a footer.
class ArrowWriter {
 public:
  // Compresses a buffer with codec 0 (LZ4) or 1 (zstd).
  using Pack = std::function<std::string(const std::string&)>;

  ArrowWriter(const std::vector<MadeBatch>& batches, std::string features = {}, int codec = -1, Pack pack = nullptr)
      : features_(std::move(features)), codec_(codec), pack_(std::move(pack)) {
    fields_ = fields_of(batches.front());
    add_message(1, FlatWriter::table_of(schema_fields()), "", nullptr);
    for (const MadeBatch& batch : batches) {
      for (const MadeColumn& column : batch)
        if (column.dictionary) add_dictionary(column);
      std::string body;
      const auto header = batch_fields(batch, body);
      add_message(3, FlatWriter::table_of(header), body, &batches_);
    }
  }

  std::string stream() const { return bytes_ + std::string("\xff\xff\xff\xff\0\0\0\0", 8); }
  std::string file() const {
    const auto moved = [](std::vector<std::uint64_t> blocks) {
      for (std::size_t i = 0; i < blocks.size(); i += 3) blocks[i] += 8;  // after the magic
      return FlatWriter::numbers(blocks, 3);
    };
    const std::string footer = FlatWriter::write([&](FlatWriter& out) {
      out.table({{0, 4},
                 {1, 0, FlatWriter::table_of(schema_fields())},
                 {2, 0, moved(dictionaries_)},
                 {3, 0, moved(batches_)}});
    });
    const auto size = static_cast<std::uint32_t>(footer.size());
    return std::string("ARROW1\0\0", 8) + stream() + footer + std::string(reinterpret_cast<const char*>(&size), 4) +
           "ARROW1";
  }

 private:
  using Fields = std::vector<FlatWriter::Field>;

  static Fields field_of(const MadeColumn& column) {
    Fields made{
        {0, 0, FlatWriter::text(column.name)}, {1, 1}, {2, column.kind}, {3, 0, FlatWriter::table_of(column.type)}};
    if (column.dictionary)
      made.push_back(
          {4, 0, FlatWriter::table_of({{0, *column.dictionary}, {1, 0, FlatWriter::table_of({{0, 8}, {1, 1}})}})});
    else
      made.push_back({5, 0, FlatWriter::tables(fields_of(column.children))});
    return made;
  }
  static std::vector<Fields> fields_of(const std::vector<MadeColumn>& columns) {
    std::vector<Fields> all;
    for (const MadeColumn& column : columns) all.push_back(field_of(column));
    return all;
  }
  Fields schema_fields() const {
    Fields made{{0, 0}, {1, 0, FlatWriter::tables(fields_)}};
    if (!features_.empty())
      made.push_back(
          {2, 0, FlatWriter::tables({{{0, 0, FlatWriter::text("huggingface")}, {1, 0, FlatWriter::text(features_)}}})});
    return made;
  }
  void add_arrays(const MadeColumn& column, std::vector<std::uint64_t>& nodes, std::vector<std::uint64_t>& buffers,
                  std::vector<std::uint64_t>& counts, std::string& body) const {
    if (column.is_view) counts.push_back(column.buffers.size() - 2);
    nodes.insert(nodes.end(), {column.length, column.nulls});
    for (const std::string& plain : column.buffers) {
      std::string stored = plain;
      if (pack_ && !plain.empty()) {
        const auto size = static_cast<std::int64_t>(plain.size());
        stored = std::string(reinterpret_cast<const char*>(&size), 8) + pack_(plain);
      }
      buffers.insert(buffers.end(), {body.size(), stored.size()});
      body += stored;
      body.resize((body.size() + 7) / 8 * 8);
    }
    if (!column.dictionary)
      for (const MadeColumn& child : column.children) add_arrays(child, nodes, buffers, counts, body);
  }
  Fields batch_fields(const MadeBatch& columns, std::string& body) const {
    std::vector<std::uint64_t> nodes, buffers, counts;
    for (const MadeColumn& column : columns) add_arrays(column, nodes, buffers, counts, body);
    Fields made{
        {0, columns.front().length}, {1, 0, FlatWriter::numbers(nodes, 2)}, {2, 0, FlatWriter::numbers(buffers, 2)}};
    if (codec_ >= 0) made.push_back({3, 0, FlatWriter::table_of({{0, static_cast<std::uint64_t>(codec_)}, {1, 0}})});
    if (!counts.empty()) made.push_back({4, 0, FlatWriter::numbers(counts, 1)});
    return made;
  }
  void add_dictionary(const MadeColumn& column) {
    std::string body;
    const auto values = batch_fields({column.children.front()}, body);
    add_message(2, FlatWriter::table_of({{0, *column.dictionary}, {1, 0, FlatWriter::table_of(values)}}), body,
                &dictionaries_);
  }
  void add_message(std::uint64_t kind, const FlatWriter::Child& header, const std::string& body,
                   std::vector<std::uint64_t>* blocks) {
    const std::string metadata = FlatWriter::write([&](FlatWriter& out) {
      out.table({{0, 4}, {1, kind}, {2, 0, header}, {3, body.size()}});
    });
    const auto size = static_cast<std::uint32_t>(metadata.size());
    if (blocks != nullptr) blocks->insert(blocks->end(), {bytes_.size(), metadata.size() + 8, body.size()});
    bytes_ += "\xff\xff\xff\xff" + std::string(reinterpret_cast<const char*>(&size), 4) + metadata + body;
  }

  const std::string features_;
  const int codec_;
  const Pack pack_;
  std::vector<Fields> fields_;
  std::string bytes_;
  std::vector<std::uint64_t> dictionaries_, batches_;
};

}  // namespace feedline::format
