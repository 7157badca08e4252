// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/sample_layout.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "format/short_list.h"
#include "text/json_reader.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;
using Split = std::expected<void, std::string>;
using Wrong = std::unexpected<std::string>;

constexpr std::size_t kSize = sizeof(std::uint32_t);  // bytes of a value's stored size

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::uint32_t number_at(Bytes bytes) {
  std::uint32_t number;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

Split split_sized(Bytes sample, const Columns& columns, std::span<Bytes> values) {
  ShortList<ValueRange> ranges(columns.size());
  const Bytes sizes = sample.first(std::min(sample.size(), bytes_of_sizes(columns)));
  if (auto found = find_sized(sizes, columns, sample.size(), ranges.all()); !found) return found;
  for (std::size_t i = 0; i < columns.size(); ++i)
    values[i] = sample.subspan(ranges.all()[i].offset, ranges.all()[i].bytes);
  return {};
}

Split split_separated(std::string_view line, const SampleSchema& schema, std::span<Bytes> values) {
  if (!line.ends_with(schema.newline)) return Wrong("the line does not end with a newline");
  line.remove_suffix(schema.newline.size());
  if (line.contains(schema.newline)) return Wrong("the sample has more than one line");
  std::size_t cells = 0;
  for (bool is_last = false; !is_last; ++cells) {
    const std::size_t end = line.find(schema.separator);
    is_last = end == line.npos;
    if (cells < values.size()) values[cells] = bytes_of(line.substr(0, end));
    if (!is_last) line.remove_prefix(end + schema.separator.size());
  }
  if (cells == values.size()) return {};
  return Wrong("the line has " + std::to_string(cells) + " cells, but there are " + std::to_string(values.size()) +
               " columns: " + names_of(schema.columns));
}

// Parses a line of JSON.
class JsonLine {
 public:
  JsonLine(std::string_view line, const Columns& columns, std::span<Bytes> values, memory::ByteBuffer& room)
      : json_(line), columns_(columns), values_(values), room_(room.resize(line.size())) {}

  Split split() {
    std::ranges::fill(values_, Bytes());
    const bool done = json_.object([this](const std::string& key) {
      const auto column = std::ranges::find(columns_, key, &Column::name);
      return column == columns_.end() ? json_.skip() : take(*column);
    });
    if (!wrong_.empty()) return Wrong(std::move(wrong_));
    if (!done || !json_.finish()) return Wrong(json_.error()->what);
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (values_[i].data() == nullptr) return Wrong("the sample has no '" + columns_[i].name + "'");
    return {};
  }

 private:
  using Kind = text::JsonReader::Kind;

  bool take(const Column& column) {
    const Kind kind = json_.peek();
    auto value = [&]() -> std::optional<std::string_view> {
      // a boolean is an integer, as in Python's isinstance(True, int)
      if (column.kind == ColumnKind::kDigits && kind == Kind::kBool) {
        const auto is_true = json_.boolean();
        return is_true ? std::optional<std::string_view>(*is_true ? "1" : "0") : std::nullopt;
      }
      if (column.kind == ColumnKind::kDigits && kind == Kind::kNumber) return json_.raw();
      if (column.kind == ColumnKind::kReal && kind == Kind::kNumber) return json_.raw();
      if (column.kind == ColumnKind::kText && kind == Kind::kString) return text();
      if (column.kind == ColumnKind::kRefused) return json_.raw();
      return {};
    }();
    if (!value && wrong_.empty() && !json_.error())
      wrong_ = "the value of '" + column.name + "' is not " + meant(column);
    if (value) values_[static_cast<std::size_t>(&column - columns_.data())] = bytes_of(*value);
    return value.has_value();
  }
  static std::string meant(const Column& column) {
    if (column.kind == ColumnKind::kDigits) return "an integer";
    return column.kind == ColumnKind::kReal ? "a number" : "text";
  }
  // The result fits into the buffer because unescaping never makes text longer.
  std::optional<std::string_view> text() {
    const auto token = json_.raw();
    if (!token) return {};
    if (!token->contains('\\')) return token->substr(1, token->size() - 2);
    const auto plain = text::JsonReader(*token).string();
    if (!plain) return {};
    std::ranges::copy(bytes_of(*plain), room_.begin());
    const std::string_view unescaped = text_of(room_.first(plain->size()));
    room_ = room_.subspan(plain->size());
    return unescaped;
  }

  text::JsonReader json_;
  const Columns& columns_;
  const std::span<Bytes> values_;
  std::span<std::byte> room_;
  std::string wrong_;
};

}  // namespace

std::size_t bytes_of_sizes(const Columns& columns) {
  std::size_t bytes = 0;
  for (const Column& column : columns) bytes += column.fixed_bytes ? 0 : kSize;
  return bytes;
}

Split find_sized(Bytes sizes, const Columns& columns, std::uint64_t bytes, std::span<ValueRange> ranges) {
  const std::size_t head = bytes_of_sizes(columns);
  if (sizes.size() < head || bytes < head) return Wrong("the sample ends within the sizes of its values");
  std::uint64_t offset = head;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::uint64_t size = columns[i].fixed_bytes.value_or(0);
    if (!columns[i].fixed_bytes) {
      size = number_at(sizes);
      sizes = sizes.subspan(kSize);
    }
    if (bytes - offset < size)
      return Wrong("the column '" + columns[i].name + "' has " + std::to_string(size) + " bytes, but " +
                   std::to_string(bytes - offset) + " are left in the sample");
    ranges[i] = {static_cast<std::size_t>(offset), static_cast<std::size_t>(size)};
    offset += size;
  }
  if (offset == bytes) return {};
  return Wrong(std::to_string(bytes - offset) + " bytes follow the last column");
}

Split split_sample(Bytes sample, const SampleSchema& schema, std::span<Bytes> values, memory::ByteBuffer& room) {
  switch (schema.layout) {
    case SampleLayout::kOneValue:
      values.front() = sample;
      return {};
    case SampleLayout::kJson:
      return JsonLine(text_of(sample), schema.columns, values, room).split();
    case SampleLayout::kSeparated:
      return split_separated(text_of(sample), schema, values);
    case SampleLayout::kSized:
      break;
  }
  return split_sized(sample, schema.columns, values);
}

}  // namespace feedline::format
