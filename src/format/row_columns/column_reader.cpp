// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/column_reader.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "format/field_kind.h"
#include "format/row_columns/column_values.h"
#include "format/short_list.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

// Parses a number like Python's float(), but rejects white space and underscores, which str() never writes.
std::optional<double> real_in(Bytes text) {
  const char *const begin = reinterpret_cast<const char*>(text.data()), *const end = begin + text.size();
  double value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end) return {};
  return value;
}

// Fills one field of one sample.
class FieldOfSample {
 public:
  FieldOfSample(const Column& column, const FieldDescription& field, Bytes value, memory::Record& record,
                memory::Record::Field& out, memory::ByteBuffer& room)
      : column_(column), field_(field), value_(value), record_(record), out_(out), room_(room) {}

  std::expected<void, ColumnProblem> fill() {
    switch (column_.kind) {
      case ColumnKind::kPixels:
        return fill_pixels();
      case ColumnKind::kNumber:
        return fill_number();
      case ColumnKind::kArray:
        return take(array_in(value_, column_));
      case ColumnKind::kReal:
        return field_.kind == FieldKind::kArray ? fill_real() : fill_bytes();
      default:
        return fill_bytes();
    }
  }

 private:
  std::unexpected<ColumnProblem> problem(std::string_view code, const std::string& what) const {
    return std::unexpected(ColumnProblem{code, data_error("field '" + field_.name + "': " + what, "format").error()});
  }
  std::unexpected<ColumnProblem> damaged(const std::string& how) const {
    return problem("bad_value", "the column '" + column_.name + "' (" + column_.encoding + "): " + how);
  }

  std::expected<void, ColumnProblem> take(const Parsed<StoredArray>& array) {
    if (!array) return damaged(array.error());
    out_.array = array->spec;
    out_.bytes = array->data;
    return {};
  }

  std::expected<void, ColumnProblem> fill_number() {
    const auto number = number_in(value_, column_);
    if (field_.kind != FieldKind::kInteger || !number) return take(number);
    const auto value = integer_of(*column_.dtype, number->data);
    if (!value) return damaged(value.error());
    out_.value = *value;
    return {};
  }

  std::expected<void, ColumnProblem> fill_bytes() {
    if (value_.empty() && !may_be_empty(field_.kind)) return problem("empty_file", "an empty file");
    out_.bytes = value_;
    if (field_.kind != FieldKind::kInteger) return {};
    const auto value = parse_integer(value_);
    if (!value) return problem("not_an_integer", not_an_integer(value_));
    out_.value = *value;
    return {};
  }

  std::expected<void, ColumnProblem> fill_real() {
    const auto value = real_in(value_);
    if (!value) return damaged("the value is not a number");
    const auto room = room_.resize(sizeof *value);
    std::memcpy(room.data(), &*value, sizeof *value);
    out_.array = ArraySpec{DType::kFloat64, {}};
    out_.bytes = room;
    return {};
  }

  // Pixels are copied because kernels read up to kRowSlack bytes past an image, which may exceed the buffer.
  std::expected<void, ColumnProblem> fill_pixels() {
    const auto pixels = pixels_in(value_);
    if (!pixels) return damaged(pixels.error());
    if (field_.kind == FieldKind::kArray) return take(array_of(*pixels));
    auto view = view_of(*pixels);
    if (!view) return damaged(view.error());
    const auto room = room_.make_room(pixels->data.size() + memory::PixelBuffer::kRowSlack,
                                      record_.most_bytes + memory::PixelBuffer::kRowSlack);
    if (!room) return std::unexpected(ColumnProblem{"too_large", room.error()});
    std::memcpy(room->data(), pixels->data.data(), pixels->data.size());
    view->data = reinterpret_cast<const std::uint8_t*>(room->data());
    out_.pixels = *view;
    return {};
  }

  const Column& column_;
  const FieldDescription& field_;
  const Bytes value_;
  memory::Record& record_;
  memory::Record::Field& out_;
  memory::ByteBuffer& room_;
};

}  // namespace

std::expected<void, ColumnProblem> ColumnReader::read(Bytes sample, memory::Record& record) const {
  ShortList<Bytes> list(schema_.columns.size());
  const std::span<Bytes> values = list.all();
  // the buffer after those of the fields and of a compressed sample
  const std::size_t of_text = fields_.size() + 1;
  if (record.more.size() <= of_text) record.more.resize(of_text + 1);
  if (const auto split = split_sample(sample, schema_, values, record.more[of_text]); !split)
    return std::unexpected(
        ColumnProblem{"bad_sample", data_error("the sample is damaged: " + split.error(), "format").error()});
  record.fields.assign(fields_.size(), {});
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const ColumnChoice& field = fields_[i];
    FieldOfSample one(schema_.columns[field.column], field.description, values[field.column], record, record.fields[i],
                      record.more[i]);
    if (auto filled = one.fill(); !filled) return filled;
  }
  return {};
}

std::expected<void, ColumnProblem> ColumnReader::read_value(std::size_t field, Bytes value,
                                                            memory::Record& record) const {
  if (record.more.empty()) record.more.resize(1);
  record.fields.assign(1, {});
  const ColumnChoice& choice = fields_[field];
  return FieldOfSample(schema_.columns[choice.column], choice.description, value, record, record.fields.front(),
                       record.more.front())
      .fill();
}

}  // namespace feedline::format
