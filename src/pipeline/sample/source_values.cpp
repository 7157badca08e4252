// SPDX-License-Identifier: Apache-2.0
// Stored numbers and texts of all samples, for labels, groups and filters. Decodes no image.

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>

#include "format/format.h"
#include "memory/number.h"
#include "memory/record.h"
#include "memory/sample_limit.h"
#include "pipeline/fields/stored_array.h"
#include "pipeline/sample/source.h"

namespace feedline::pipeline {
namespace {

using format::FieldDescription;
using format::FieldKind;

// Receives the value of the i-th requested field of a sample.
using Sink = std::function<Result<void>(std::size_t i, std::uint64_t sample, StoredValue value)>;

// Returns an integer or a floating-point number; an empty value for other dtypes, and for integers that exceed int64.
StoredValue number_at(const std::byte* data, DType dtype) {
  return memory::with_number(dtype, {data, size_of(dtype)}, [](auto number) -> StoredValue {
    using Number = decltype(number);
    if constexpr (std::is_integral_v<Number>)
      return std::in_range<std::int64_t>(number + 0) ? StoredValue(static_cast<std::int64_t>(number)) : StoredValue();
    if constexpr (std::is_floating_point_v<Number>) return static_cast<double>(number);
    return {};
  });
}

// kData: as read_array().
Result<StoredValue> value_of(const memory::Record::Field& stored, FieldKind kind) {
  if (stored.absent) return StoredValue();
  if (kind == FieldKind::kInteger) return stored.value;
  if (kind == FieldKind::kText || kind == FieldKind::kJson)
    return std::string(reinterpret_cast<const char*>(stored.bytes.data()), stored.bytes.size());
  if (kind != FieldKind::kArray) return StoredValue();
  FEEDLINE_TRY(const decode::NpyArray array, read_array(stored));
  return array.spec.shape.dims() == 0 ? number_at(array.data.data(), array.spec.dtype) : StoredValue();
}

// Receives a field of a sample as it is stored: the i-th of the requested fields.
using StoredSink =
    std::function<Result<void>(std::size_t i, std::uint64_t sample, const memory::Record::Field& stored)>;

// Reads as little of each sample as its format allows: nothing if the fields are in memory, otherwise the fields, and
// the whole sample only if the format cannot read single fields.
Result<void> each_stored(const format::RecordFormat& records, const std::vector<std::size_t>& fields,
                         const std::string& source, const StoredSink& sink) {
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  memory::Record::Field known;
  std::string room;
  for (std::uint64_t sample = 0; sample < records.size(); ++sample) {
    bool is_whole = false;
    const auto stored_in = [&](std::size_t field) -> Result<const memory::Record::Field*> {
      if (is_whole) return &record.fields[field];
      if (records.find_value(sample, field, known, room)) return &known;
      FEEDLINE_TRY(const bool is_read, records.read_field(sample, field, record));
      if (is_read) return &record.fields.front();
      FEEDLINE_CHECK_OK(records.read(sample, record));
      is_whole = true;
      return &record.fields[field];
    };
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto stored = stored_in(fields[i]);
      auto done = stored ? sink(i, sample, **stored) : std::unexpected(stored.error());
      if (done) continue;
      Error error = std::move(done).error();
      if (error.code != ErrorCode::kConfig) error = with_location(std::move(error), records, source, sample);
      return std::unexpected(std::move(error));
    }
  }
  return {};
}

Result<void> each_of_records(const format::RecordFormat& records, const std::vector<std::size_t>& fields,
                             const std::string& source, const Sink& sink) {
  return each_stored(records, fields, source,
                     [&](std::size_t i, std::uint64_t sample, const memory::Record::Field& stored) -> Result<void> {
                       FEEDLINE_TRY(StoredValue value, value_of(stored, records.fields()[fields[i]].kind));
                       return sink(i, sample, std::move(value));
                     });
}

StoredValue value_in(const ArrayView& row, std::uint64_t at = 0) {
  return row.spec.shape.dims() == 0 ? number_at(row.data + at * row.spec.bytes(), row.spec.dtype) : StoredValue();
}

// The rows of one sample of a row format.
class SampleRows {
 public:
  explicit SampleRows(const format::RowFormat& rows, const std::string& source)
      : rows_(rows), source_(source), memory_(rows.fields().size()) {}

  // The result is valid until the next call.
  Result<std::span<const ArrayView>> fill(std::uint64_t sample) {
    views_.clear();
    for (std::size_t field = 0; field < memory_.size(); ++field) {
      ArraySpec spec = rows_.fields()[field].array;
      if (spec.is_ragged()) spec.shape = spec.shape.with_first(static_cast<std::int64_t>(rows_.length(sample, field)));
      memory_[field].resize(std::max<std::size_t>(1, spec.bytes()));  // a field without data would not be filled
      views_.push_back({memory_[field].data(), spec});
    }
    if (auto filled = rows_.fill({&sample, 1}, views_); !filled)
      return std::unexpected(with_location(std::move(filled).error(), rows_, source_, sample));
    return views_;
  }

 private:
  const format::RowFormat& rows_;
  const std::string& source_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<ArrayView> views_;
};

// Reads many samples at a time.
Result<void> each_of_even_rows(const format::RowFormat& rows, const std::vector<std::size_t>& fields,
                               const std::string& source, const Sink& sink) {
  const std::uint64_t at_once = std::max<std::uint64_t>(1, rows.grain());
  std::vector<std::vector<std::byte>> memory;
  std::vector<ArrayView> first_rows;
  for (const FieldDescription& one : rows.fields()) {
    memory.emplace_back(at_once * one.array.bytes());
    first_rows.push_back({memory.back().data(), one.array});
  }
  std::vector<std::uint64_t> samples(at_once);
  for (std::uint64_t begin = 0; begin < rows.size(); begin += at_once) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(at_once, rows.size() - begin));
    std::iota(samples.begin(), samples.end(), begin);
    if (auto filled = rows.fill(std::span(samples).first(count), first_rows); !filled)
      return std::unexpected(with_location(std::move(filled).error(), rows, source, begin));
    for (std::size_t i = 0; i < fields.size(); ++i)
      for (std::size_t at = 0; at < count; ++at)
        FEEDLINE_CHECK_OK(sink(i, begin + at, value_in(first_rows[fields[i]], at)));
  }
  return {};
}

Result<void> each_of_rows(const format::RowFormat& rows, const std::vector<std::size_t>& fields,
                          const std::string& source, const Sink& sink) {
  if (std::ranges::none_of(rows.fields(), [](const FieldDescription& one) { return one.array.is_ragged(); }))
    return each_of_even_rows(rows, fields, source, sink);
  SampleRows filled(rows, source);
  for (std::uint64_t sample = 0; sample < rows.size(); ++sample) {
    FEEDLINE_TRY(const auto views, filled.fill(sample));
    for (std::size_t i = 0; i < fields.size(); ++i) FEEDLINE_CHECK_OK(sink(i, sample, value_in(views[fields[i]])));
  }
  return {};
}

// Returns a description of a value that is not an integer, for the end of a message.
std::string described(const StoredValue& value) {
  constexpr std::size_t kShown = 60;  // maximum characters of a value in a message
  if (const auto* real = std::get_if<double>(&value)) return ", but the number " + std::to_string(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return ", but the text '" + text->substr(0, kShown) + "'";
  return "";
}

bool is_of_numbers(FieldKind kind) {
  return kind == FieldKind::kArray || kind == FieldKind::kBoxes || kind == FieldKind::kKeypoints;
}

// Adds the array of a sample. Starting with the first sample of a different shape, each array has its own shape.
Result<void> add_array(const std::string& field, std::uint64_t sample, const decode::NpyArray& array,
                       FieldValues& values) {
  const ArraySpec& spec = array.spec;
  if (sample == 0) values.row = spec;
  if (spec.dtype != values.row.dtype)
    return config_error("targets: the field '" + field + "' has the dtype " + std::string(name_of(values.row.dtype)) +
                        " in sample 0 and " + std::string(name_of(spec.dtype)) + " in sample " +
                        std::to_string(sample) + "; convert it to one dtype");
  if (!values.are_separate && spec.shape != values.row.shape) {
    values.are_separate = true;
    values.shapes.assign(sample, values.row.shape);
  }
  if (values.are_separate) values.shapes.push_back(spec.shape);
  values.data.insert(values.data.end(), array.data.begin(), array.data.end());
  return {};
}

// Returns the arrays of a field. Those of a ragged field are separate.
Result<FieldValues> arrays_in(const format::RowFormat& rows, std::size_t field, const std::string& source) {
  const ArraySpec& spec = rows.fields()[field].array;
  FieldValues values{.row = spec, .are_separate = spec.is_ragged()};
  SampleRows filled(rows, source);
  for (std::uint64_t sample = 0; sample < rows.size(); ++sample) {
    FEEDLINE_TRY(const auto views, filled.fill(sample));
    const ArrayView& row = views[field];
    if (values.are_separate) values.shapes.push_back(row.spec.shape);
    values.data.insert(values.data.end(), row.data, row.data + row.spec.bytes());
  }
  return values;
}

bool is_integer(const ArraySpec& spec) {
  if (spec.shape.dims() != 0) return false;
  const std::array<std::byte, sizeof(std::uint64_t)> zero{};
  return std::holds_alternative<std::int64_t>(number_at(zero.data(), spec.dtype));
}

Result<std::size_t> field_of(const std::vector<FieldDescription>& fields, const std::string& name) {
  const auto found = std::ranges::find(fields, name, &FieldDescription::name);
  if (found == fields.end()) return config_error("numbers: there is no field '" + name + "'");
  return static_cast<std::size_t>(found - fields.begin());
}

Result<void> each_value(const std::shared_ptr<const format::Format>& format, const std::vector<std::size_t>& fields,
                        const std::string& source, const Sink& sink) {
  if (const auto records = format::records_of(format)) return each_of_records(*records, fields, source, sink);
  return each_of_rows(*format::rows_of(format), fields, source, sink);
}

}  // namespace

Result<std::vector<std::int64_t>> Source::numbers(const std::string& field) const {
  FEEDLINE_TRY(const std::size_t position, field_of(format_->fields(), field));
  std::vector<std::int64_t> numbers(size());
  FEEDLINE_CHECK_OK(each_value(format_, {position}, name_,
                               [&](std::size_t, std::uint64_t sample, const StoredValue& value) -> Result<void> {
                                 const auto* number = std::get_if<std::int64_t>(&value);
                                 if (number == nullptr)
                                   return config_error("the field '" + field + "' has no integer in sample " +
                                                       std::to_string(sample) + described(value));
                                 numbers[sample] = *number;
                                 return {};
                               }));
  return numbers;
}

Result<std::vector<std::vector<StoredValue>>> Source::values(const std::vector<std::string>& fields) const {
  std::vector<std::size_t> positions;
  for (const std::string& name : fields) {
    FEEDLINE_TRY(const std::size_t position, field_of(format_->fields(), name));
    positions.push_back(position);
  }
  std::vector<std::vector<StoredValue>> values(fields.size(), std::vector<StoredValue>(size()));
  FEEDLINE_CHECK_OK(each_value(format_, positions, name_,
                               [&](std::size_t i, std::uint64_t sample, StoredValue value) -> Result<void> {
                                 values[i][sample] = std::move(value);
                                 return {};
                               }));
  return values;
}

Result<FieldValues> Source::field_values(const std::string& field) const {
  FEEDLINE_TRY(const std::size_t position, field_of(format_->fields(), field));
  const FieldKind kind = format_->fields()[position].kind;
  const auto records = format::records_of(format_);
  const ArraySpec& array = format_->fields()[position].array;
  if (!records && !is_integer(array)) return arrays_in(*format::rows_of(format_), position, name_);
  FieldValues values;
  if (!records || kind == FieldKind::kInteger) {
    FEEDLINE_TRY(const std::vector<std::int64_t> known, numbers(field));
    values.row = {DType::kInt64, {}};
    const auto bytes = std::as_bytes(std::span(known));
    values.data.assign(bytes.begin(), bytes.end());
    return values;
  }
  if (kind == FieldKind::kText || kind == FieldKind::kJson) {
    values.is_text = true;
    FEEDLINE_TRY(auto columns, this->values({field}));
    for (StoredValue& value : columns.front()) {
      if (!std::holds_alternative<std::string>(value))
        return config_error("targets: sample " + std::to_string(values.texts.size()) + " has no text in the field '" +
                            field + "'");
      values.texts.push_back(std::get<std::string>(std::move(value)));
    }
    return values;
  }
  const auto wrong_kind = [&] {
    return config_error("targets: the field '" + field + "' is of kind '" + std::string(format::name_of(kind)) +
                        "'; targets() returns integers, text and arrays of numbers");
  };
  if (!is_of_numbers(kind)) return wrong_kind();
  values.are_separate = kind != FieldKind::kArray || array.is_ragged();
  const auto add = [&](std::size_t, std::uint64_t sample, const memory::Record::Field& stored) -> Result<void> {
    if (stored.absent)
      return config_error("targets: sample " + std::to_string(sample) + " has no value in the field '" + field +
                          "'; open the dataset with missing=\"skip\" to omit such samples");
    if (kind != FieldKind::kArray && !stored.array) return wrong_kind();  // a file of numbers or JSON
    FEEDLINE_TRY(const decode::NpyArray numbers, read_array(stored));
    return add_array(field, sample, numbers, values);
  };
  FEEDLINE_CHECK_OK(each_stored(*records, {position}, name_, add));
  return values;
}

}  // namespace feedline::pipeline
