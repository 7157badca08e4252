// SPDX-License-Identifier: Apache-2.0
// Stored numbers and texts of all samples, for labels, groups and filters. Decodes no image.

#include <algorithm>
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

// An integer or a floating-point number; nothing for other types, and for integers above those of an int64.
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

// Reads a sample only if one of the fields is not in memory.
Result<void> each_of_records(const format::RecordFormat& records, const std::vector<std::size_t>& fields,
                             const std::string& source, const Sink& sink) {
  const auto& described = records.fields();
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  memory::Record::Field known;
  std::string room;
  for (std::uint64_t sample = 0; sample < records.size(); ++sample) {
    bool is_read = false;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const memory::Record::Field* stored = &known;
      if (is_read || !records.find_value(sample, fields[i], known, room)) {
        if (auto read = is_read ? Result<void>() : records.read(sample, record); !read)
          return std::unexpected(with_location(std::move(read).error(), records, source, sample));
        is_read = true;
        stored = &record.fields[fields[i]];
      }
      auto value = value_of(*stored, described[fields[i]].kind);
      if (!value) return std::unexpected(with_location(std::move(value).error(), records, source, sample));
      FEEDLINE_CHECK_OK(sink(i, sample, std::move(*value)));
    }
  }
  return {};
}

Result<void> each_of_rows(const format::RowFormat& rows, const std::vector<std::size_t>& fields,
                          const std::string& source, const Sink& sink) {
  const auto& described = rows.fields();
  const std::uint64_t at_once = std::max<std::uint64_t>(1, rows.grain());
  std::vector<std::vector<std::byte>> memory;
  std::vector<ArrayView> first_rows;
  for (const FieldDescription& one : described) {
    if (one.array.is_ragged())
      return config_error("numbers: the samples of '" + source + "' have different lengths (field '" + one.name + "')");
    memory.emplace_back(at_once * one.array.bytes());
    first_rows.push_back({memory.back().data(), one.array});
  }
  std::vector<std::uint64_t> samples(at_once);
  for (std::uint64_t begin = 0; begin < rows.size(); begin += at_once) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(at_once, rows.size() - begin));
    std::iota(samples.begin(), samples.end(), begin);
    if (auto filled = rows.fill(std::span(samples).first(count), first_rows); !filled)
      return std::unexpected(with_location(std::move(filled).error(), rows, source, begin));
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const ArraySpec& row = described[fields[i]].array;
      for (std::size_t at = 0; at < count; ++at)
        FEEDLINE_CHECK_OK(sink(
            i, begin + at,
            row.shape.dims() == 0 ? number_at(memory[fields[i]].data() + at * row.bytes(), row.dtype) : StoredValue()));
    }
  }
  return {};
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
  FEEDLINE_CHECK_OK(each_value(
      format_, {position}, name_, [&](std::size_t, std::uint64_t sample, const StoredValue& value) -> Result<void> {
        const auto* number = std::get_if<std::int64_t>(&value);
        if (number == nullptr)
          return config_error("numbers: field '" + field + "' does not have one integer for every sample");
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
  memory::Record::Field value;
  std::string room;
  for (std::uint64_t i = 0; i < size(); ++i) {
    if (!records->find_value(i, position, value, room) || !value.array)
      return config_error("targets: the field '" + field + "' (" + std::string(format::name_of(kind)) +
                          ") has no value in memory for sample " + std::to_string(i) +
                          "; targets() returns integers and text, and the numbers of tables");
    if (i == 0) values.row = *value.array;
    if (*value.array != values.row)
      return config_error("targets: the field '" + field + "' has samples of different shapes, " +
                          values.row.shape.to_string() + " and " + value.array->shape.to_string());
    values.data.insert(values.data.end(), value.bytes.begin(), value.bytes.end());
  }
  return values;
}

}  // namespace feedline::pipeline
