// SPDX-License-Identifier: Apache-2.0
#include "format/packed/sequences.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "decode/npy/npy.h"
#include "memory/sample_limit.h"

namespace feedline::format {
namespace {

std::unexpected<Error> at_sequence(const Format& format, std::uint64_t sequence, Error error) {
  const Where where = format.where(sequence);
  error.where.record = sequence;
  if (error.where.shard.empty()) error.where.shard = where.shard;
  if (error.where.key.empty()) error.where.key = where.key;
  if (!error.where.offset) error.where.offset = where.offset;
  return std::unexpected(std::move(error));
}

// A ragged field of rows.
class RowSequences final : public Sequences {
 public:
  RowSequences(std::shared_ptr<const RowFormat> rows, std::size_t field) : rows_(std::move(rows)), field_(field) {}

  std::uint64_t size() const override { return rows_->size(); }
  void lengths(std::span<const std::uint64_t> sequences, std::span<std::uint64_t> lengths) const override {
    rows_->lengths(sequences, field_, lengths);
  }
  Result<std::uint64_t> read(std::uint64_t sequence, std::uint64_t begin, std::span<std::int64_t> out) const override {
    auto read = rows_->read_integers(sequence, field_, begin, out);
    if (!read) return at_sequence(*rows_, sequence, std::move(read).error());
    return read;
  }
  Where where(std::uint64_t sequence) const override { return rows_->where(sequence); }

 private:
  const std::shared_ptr<const RowFormat> rows_;
  const std::size_t field_;
};

// A field of records.
class RecordSequences final : public Sequences {
 public:
  using Lengths = std::vector<std::uint64_t>;  // 8 bytes for each record

  RecordSequences(std::shared_ptr<const RecordFormat> records, std::size_t field,
                  std::shared_ptr<const Lengths> lengths)
      : records_(std::move(records)), field_(field), lengths_(std::move(lengths)) {}

  std::uint64_t size() const override { return records_->size(); }
  void lengths(std::span<const std::uint64_t> sequences, std::span<std::uint64_t> lengths) const override {
    for (std::size_t i = 0; i < sequences.size(); ++i) lengths[i] = (*lengths_)[sequences[i]];
  }
  Result<std::uint64_t> read(std::uint64_t sequence, std::uint64_t begin, std::span<std::int64_t> out) const override {
    const auto part = [&]() -> Result<std::uint64_t> {
      FEEDLINE_TRY(const decode::NpyArray array, array_of(sequence));
      FEEDLINE_TRY(const ToInt64 convert, to_int64_of(array.spec.dtype));
      if (begin + out.size() > static_cast<std::uint64_t>(array.spec.shape[0]))
        return data_error("the sequence has become shorter since it was indexed", "format");
      convert(array.data.data() + begin * size_of(array.spec.dtype), out.size(), out.data());
      return array.data.size();
    };
    auto read = part();
    if (!read) return at_sequence(*records_, sequence, std::move(read).error());
    return read;
  }
  Where where(std::uint64_t sequence) const override { return records_->where(sequence); }
  // Reads the sequence to find its length.
  Result<std::uint64_t> read_length(std::uint64_t sequence) const {
    auto array = array_of(sequence);
    if (!array) return at_sequence(*records_, sequence, std::move(array).error());
    return static_cast<std::uint64_t>(array->spec.shape[0]);
  }

 private:
  // Valid until the next call in this thread.
  Result<decode::NpyArray> array_of(std::uint64_t sequence) const {
    thread_local memory::Record record;
    thread_local memory::Record::Field known;
    thread_local std::string room;
    record.most_bytes = memory::usual_sample_limit();
    const memory::Record::Field* stored = &known;
    if (!records_->find_value(sequence, field_, known, room)) {
      FEEDLINE_TRY(const bool is_read, records_->read_field(sequence, field_, record));
      if (!is_read) FEEDLINE_CHECK_OK(records_->read(sequence, record));
      stored = is_read ? &record.fields.front() : &record.fields[field_];
    }
    const std::string& name = records_->fields()[field_].name;
    if (stored->absent) return data_error("the sample has no '" + name + "'", "format");
    decode::NpyArray array;
    if (stored->array) {
      array = {*stored->array, stored->bytes};
    } else {
      FEEDLINE_TRY(array, decode::read_npy(stored->bytes));
    }
    if (array.spec.shape.dims() != 1)
      return data_error("'" + name + "' must be one-dimensional, but the shape is " + array.spec.shape.to_string(),
                        "format");
    return array;
  }

  const std::shared_ptr<const RecordFormat> records_;
  const std::size_t field_;
  const std::shared_ptr<const Lengths> lengths_;
};

// Whether samples of the field may be sequences: for rows, the lengths must be known; of records, often only the kind
// is known.
bool may_be_sequences(const FieldDescription& field, bool are_rows) {
  if (field.kind != FieldKind::kArray) return false;
  const ArraySpec& spec = field.array;
  const bool is_list = spec.shape.dims() == 1 && to_int64_of(spec.dtype);
  return are_rows ? spec.is_ragged() && is_list : spec.shape.dims() == 0 || is_list;
}

bool may_be_tokens(const FieldDescription& field, bool are_rows) {
  return may_be_sequences(field, are_rows) && (field.array.shape.dims() == 0 || field.array.dtype != DType::kBool);
}

std::string names_of(const std::vector<FieldDescription>& fields) {
  std::string text;
  for (const FieldDescription& field : fields) text += (text.empty() ? "" : ", ") + field.name;
  return text;
}

constexpr const char* kLossMaskField = "loss_mask";
constexpr const char* kLabelsField = "labels";

std::optional<std::size_t> find_field(const std::vector<FieldDescription>& fields, const std::string& name) {
  const auto found = std::ranges::find(fields, name, &FieldDescription::name);
  return found == fields.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - fields.begin()));
}

// Returns the field of tokens if none is named: "input_ids", or the only possible one.
Result<std::size_t> only_tokens(const std::vector<FieldDescription>& fields, bool are_rows, const std::string& name) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (may_be_tokens(fields[i], are_rows) && fields[i].name != kLossMaskField && fields[i].name != kLabelsField)
      found.push_back(i);
  for (const std::size_t i : found)
    if (fields[i].name == "input_ids") return i;
  if (found.empty())
    return config_error("pack_sequences: no field of \"" + name + "\" has lists of integers; the fields are " +
                        names_of(fields) + ", and tokens must be one-dimensional integers of any length");
  if (found.size() > 1)
    return config_error("pack_sequences: '" + fields[found[0]].name + "' and '" + fields[found[1]].name +
                        "' are both lists of integers; pass field=, the one to pack");
  return found.front();
}

Result<std::size_t> tokens_of(const std::vector<FieldDescription>& fields, bool are_rows, const std::string& field,
                              const std::string& name) {
  if (field.empty()) return only_tokens(fields, are_rows, name);
  const auto found = find_field(fields, field);
  if (!found)
    return config_error("pack_sequences: the dataset does not have the field '" + field + "'; its fields are " +
                        names_of(fields));
  if (!may_be_tokens(fields[*found], are_rows))
    return config_error("pack_sequences: the field '" + field +
                        "' does not contain lists of integers; the fields are " + names_of(fields) +
                        ", and tokens must be one-dimensional integers of any length");
  return *found;
}

// Returns the field `name` that belongs to the tokens, or nullopt if the dataset does not have it.
Result<std::optional<std::size_t>> companion_of(const std::vector<FieldDescription>& fields, bool are_rows,
                                                const char* name, std::size_t tokens) {
  const auto found = find_field(fields, name);
  if (!found || *found == tokens) return std::nullopt;
  if (std::string_view(name) == kLossMaskField ? may_be_sequences(fields[*found], are_rows)
                                               : may_be_tokens(fields[*found], are_rows))
    return found;
  return config_error("pack_sequences: the field '" + std::string(name) + "' does not have a list of integers" +
                      (std::string_view(name) == kLossMaskField ? " or bools" : "") +
                      " for each sample; rename it, or open the dataset without it, to pack only '" +
                      fields[tokens].name + "'");
}

Error other_length(const std::vector<FieldDescription>& fields, std::size_t tokens, std::uint64_t length,
                   std::size_t other, std::uint64_t other_length) {
  return data_error("'" + fields[other].name + "' has " + std::to_string(other_length) + " values, but '" +
                        fields[tokens].name + "' has " + std::to_string(length) +
                        " tokens; both must have the same length",
                    "format")
      .error();
}

// Opens several fields; the first one is that of the tokens.
Result<std::vector<std::shared_ptr<const Sequences>>> sequences_of_rows(const std::shared_ptr<const RowFormat>& rows,
                                                                        const std::vector<std::size_t>& numbers) {
  constexpr std::uint64_t kAtOnce = 4096;
  std::vector<std::uint64_t> samples, lengths, others;
  for (std::uint64_t first = 0; numbers.size() > 1 && first < rows->size(); first += kAtOnce) {
    samples.resize(std::min(kAtOnce, rows->size() - first));
    lengths.resize(samples.size());
    others.resize(samples.size());
    std::iota(samples.begin(), samples.end(), first);
    rows->lengths(samples, numbers.front(), lengths);
    for (std::size_t f = 1; f < numbers.size(); ++f) {
      rows->lengths(samples, numbers[f], others);
      const auto [length, other] = std::ranges::mismatch(lengths, others);
      if (length == lengths.end()) continue;
      return at_sequence(*rows, first + static_cast<std::uint64_t>(length - lengths.begin()),
                         other_length(rows->fields(), numbers.front(), *length, numbers[f], *other));
    }
  }
  std::vector<std::shared_ptr<const Sequences>> opened;
  for (const std::size_t field : numbers) opened.push_back(std::make_shared<const RowSequences>(rows, field));
  return opened;
}

Result<std::vector<std::shared_ptr<const Sequences>>> sequences_of_records(
    const std::shared_ptr<const RecordFormat>& records, const std::vector<std::size_t>& numbers) {
  const auto lengths = std::make_shared<RecordSequences::Lengths>();
  std::vector<std::shared_ptr<const RecordSequences>> fields;
  for (const std::size_t field : numbers)
    fields.push_back(std::make_shared<const RecordSequences>(records, field, lengths));
  for (std::uint64_t i = 0; i < records->size(); ++i) {
    FEEDLINE_TRY(const std::uint64_t length, fields.front()->read_length(i));
    for (std::size_t f = 1; f < fields.size(); ++f) {
      FEEDLINE_TRY(const std::uint64_t other, fields[f]->read_length(i));
      if (other != length)
        return at_sequence(*records, i, other_length(records->fields(), numbers.front(), length, numbers[f], other));
    }
    lengths->push_back(length);
  }
  return std::vector<std::shared_ptr<const Sequences>>(fields.begin(), fields.end());
}

}  // namespace

Result<TokenFields> token_fields_of(const std::shared_ptr<const Format>& format, const std::string& field,
                                    const std::string& name) {
  const auto rows = rows_of(format);
  const auto& fields = format->fields();
  FEEDLINE_TRY(const std::size_t tokens, tokens_of(fields, rows != nullptr, field, name));
  FEEDLINE_TRY(const auto mask, companion_of(fields, rows != nullptr, kLossMaskField, tokens));
  FEEDLINE_TRY(const auto labels, companion_of(fields, rows != nullptr, kLabelsField, tokens));
  std::vector<std::size_t> numbers{tokens};
  if (mask) numbers.push_back(*mask);
  if (labels) numbers.push_back(*labels);
  auto opened = rows ? sequences_of_rows(rows, numbers) : sequences_of_records(records_of(format), numbers);
  if (!opened) {
    Error error = std::move(opened).error();
    error.where.dataset = name;
    return std::unexpected(std::move(error));
  }
  return TokenFields{opened->front(), mask ? (*opened)[1] : nullptr, labels ? opened->back() : nullptr};
}

}  // namespace feedline::format
