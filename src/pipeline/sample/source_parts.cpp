// SPDX-License-Identifier: Apache-2.0
// Parts of a source: subsets, splits, and the values of a field to split by.

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "format/format.h"
#include "format/subset_format.h"
#include "memory/number.h"
#include "memory/sample_limit.h"
#include "pipeline/sample/source.h"
#include "plan/split.h"

namespace feedline::pipeline {
namespace {

using Numbers = std::vector<std::int64_t>;

// Requires: an integer dtype.
std::int64_t integer_at(const std::byte* data, DType dtype) {
  return memory::with_number(dtype, {data, size_of(dtype)}, [](auto number) -> std::int64_t {
    constexpr bool is_integer = std::is_integral_v<decltype(number)>;
    FEEDLINE_CHECK(is_integer);
    if constexpr (is_integer) return static_cast<std::int64_t>(number);
    return {};
  });
}

bool is_integer(const ArraySpec& array) {
  const DType dtype = array.dtype;
  if (array.shape.dims() != 0) return false;
  return dtype == DType::kUint8 || dtype == DType::kInt8 || dtype == DType::kUint16 || dtype == DType::kInt16 ||
         dtype == DType::kUint32 || dtype == DType::kInt32 || dtype == DType::kInt64;
}

std::unexpected<Error> no_integers(const std::string& field) {
  return config_error("numbers: field '" + field + "' does not have one integer for every sample");
}

Result<Numbers> numbers_of_records(const format::RecordFormat& records, std::size_t field, const std::string& source) {
  Numbers numbers(records.size());
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  memory::Record::Field stored;
  std::string room;
  for (std::uint64_t i = 0; i < numbers.size(); ++i) {
    if (!records.find_value(i, field, stored, room)) {
      if (auto read = records.read(i, record); !read)
        return std::unexpected(with_location(std::move(read).error(), records, source, i));
      stored = record.fields[field];
    }
    if (records.fields()[field].kind == format::FieldKind::kInteger)
      numbers[i] = stored.value;
    else if (stored.array && is_integer(*stored.array))
      numbers[i] = integer_at(stored.bytes.data(), stored.array->dtype);
    else
      return no_integers(records.fields()[field].name);
  }
  return numbers;
}

Result<Numbers> numbers_of_rows(const format::RowFormat& rows, std::size_t field, const std::string& source) {
  const auto& fields = rows.fields();
  const std::uint64_t at_once = std::max<std::uint64_t>(1, rows.grain());
  std::vector<std::vector<std::byte>> memory;
  std::vector<ArrayView> first_rows;
  for (const format::FieldDescription& one : fields) {
    if (one.array.is_ragged())
      return config_error("numbers: the samples of '" + source + "' have different lengths (field '" + one.name + "')");
    memory.emplace_back(at_once * one.array.bytes());
    first_rows.push_back({memory.back().data(), one.array});
  }
  Numbers numbers(rows.size());
  std::vector<std::uint64_t> samples(at_once);
  for (std::uint64_t begin = 0; begin < numbers.size(); begin += at_once) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(at_once, numbers.size() - begin));
    std::iota(samples.begin(), samples.end(), begin);
    if (auto filled = rows.fill(std::span(samples).first(count), first_rows); !filled)
      return std::unexpected(with_location(std::move(filled).error(), rows, source, begin));
    const ArraySpec& row = fields[field].array;
    for (std::size_t i = 0; i < count; ++i)
      numbers[begin + i] = integer_at(memory[field].data() + i * row.bytes(), row.dtype);
  }
  return numbers;
}

}  // namespace

Result<Source> Source::subset(std::vector<std::uint64_t> indices) const {
  if (is_mixture()) return config_error("subset: the dataset is a mixture; take subsets of its datasets and mix those");
  Source part = *this;
  FEEDLINE_TRY(part.format_, format::subset(format_, std::move(indices)));
  return part;
}

Result<std::vector<Source>> Source::split(const std::vector<std::uint64_t>& counts, std::uint64_t seed,
                                          const std::vector<std::int64_t>& classes) const {
  if (is_mixture()) return config_error("split: the dataset is a mixture; split its datasets and mix the parts");
  if (counts.empty() || counts.size() > 65535)
    return config_error("split: the number of parts must be between 1 and 65535");
  for (std::uint64_t count : counts)
    if (count == 0 || count > size())
      return config_error("split: a part of " + std::to_string(count) + " samples is not possible in a dataset of " +
                          std::to_string(size()));
  const auto sum = std::accumulate(counts.begin(), counts.end(), std::uint64_t{});
  if (sum != size())
    return config_error("split: the parts have " + std::to_string(sum) + " samples in total, but the dataset has " +
                        std::to_string(size()));
  if (!classes.empty() && classes.size() != size())
    return config_error("split: " + std::to_string(classes.size()) + " classes were given for " +
                        std::to_string(size()) + " samples");
  std::vector<Source> parts;
  for (auto& indices : plan::split(counts, seed, classes)) {
    FEEDLINE_TRY(auto part, subset(std::move(indices)));
    parts.push_back(std::move(part));
  }
  return parts;
}

Result<std::vector<std::int64_t>> Source::numbers(const std::string& field) const {
  const auto& fields = format_->fields();
  const auto found = std::ranges::find(fields, field, &format::FieldDescription::name);
  if (found == fields.end()) return config_error("numbers: there is no field '" + field + "'");
  const auto position = static_cast<std::size_t>(found - fields.begin());
  const auto records = format::records_of(format_);
  const bool may_hold = records ? found->kind == format::FieldKind::kInteger || found->kind == format::FieldKind::kArray
                                : is_integer(found->array);
  if (!may_hold || found->may_be_absent) return no_integers(field);
  if (records) return numbers_of_records(*records, position, name_);
  return numbers_of_rows(*format::rows_of(format_), position, name_);
}

Result<FieldValues> Source::values(const std::string& field) const {
  const auto& fields = format_->fields();
  const auto found = std::ranges::find(fields, field, &format::FieldDescription::name);
  if (found == fields.end()) return config_error("targets: there is no field '" + field + "'");
  const auto records = format::records_of(format_);
  FieldValues values;
  if (!records || found->kind == format::FieldKind::kInteger) {
    FEEDLINE_TRY(const Numbers known, numbers(field));
    values.row = {DType::kInt64, {}};
    const auto bytes = std::as_bytes(std::span(known));
    values.data.assign(bytes.begin(), bytes.end());
    return values;
  }
  const auto position = static_cast<std::size_t>(found - fields.begin());
  memory::Record::Field value;
  std::string room;
  for (std::uint64_t i = 0; i < size(); ++i) {
    if (!records->find_value(i, position, value, room))
      return config_error("targets: the field '" + field + "' (" + std::string(format::name_of(found->kind)) +
                          ") has no value in memory for sample " + std::to_string(i) +
                          "; targets() returns integers, and the numbers and text of tables");
    if (i == 0 && value.array) values.row = *value.array;
    values.is_text = !value.array;
    if (values.is_text)
      values.texts.emplace_back(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
    else if (value.array != values.row)
      return config_error("targets: the field '" + field + "' has samples of different shapes, " +
                          values.row.shape.to_string() + " and " + value.array->shape.to_string());
    else
      values.data.insert(values.data.end(), value.bytes.begin(), value.bytes.end());
  }
  return values;
}

}  // namespace feedline::pipeline
