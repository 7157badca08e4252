// SPDX-License-Identifier: Apache-2.0
#include "format/packed/sequences.h"

#include <algorithm>
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

// A field of records, whose lengths take 8 bytes each.
class RecordSequences final : public Sequences {
 public:
  static Result<std::shared_ptr<const Sequences>> make(std::shared_ptr<const RecordFormat> records, std::size_t field) {
    auto made = std::make_shared<RecordSequences>(std::move(records), field);
    for (std::uint64_t i = 0; i < made->records_->size(); ++i) {
      auto array = made->array_of(i);
      if (!array) return at_sequence(*made->records_, i, std::move(array).error());
      made->lengths_.push_back(static_cast<std::uint64_t>(array->spec.shape[0]));
    }
    return made;
  }
  RecordSequences(std::shared_ptr<const RecordFormat> records, std::size_t field)
      : records_(std::move(records)), field_(field) {}

  std::uint64_t size() const override { return lengths_.size(); }
  void lengths(std::span<const std::uint64_t> sequences, std::span<std::uint64_t> lengths) const override {
    for (std::size_t i = 0; i < sequences.size(); ++i) lengths[i] = lengths_[sequences[i]];
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
    if (stored->absent) return data_error("the sample has no tokens", "format");
    decode::NpyArray array;
    if (stored->array) {
      array = {*stored->array, stored->bytes};
    } else {
      FEEDLINE_TRY(array, decode::read_npy(stored->bytes));
    }
    if (array.spec.shape.dims() != 1)
      return data_error("tokens must be one-dimensional, but the shape is " + array.spec.shape.to_string(), "format");
    return array;
  }

  const std::shared_ptr<const RecordFormat> records_;
  const std::size_t field_;
  std::vector<std::uint64_t> lengths_;
};

// Returns whether the field's samples may be sequences. Lengths of rows must be known; records have only a kind.
bool may_be_sequences(const FieldDescription& field, bool are_rows) {
  if (field.kind != FieldKind::kArray) return false;
  const ArraySpec& spec = field.array;
  if (are_rows) return spec.is_ragged() && spec.shape.dims() == 1 && to_int64_of(spec.dtype);
  const bool is_known = spec.shape.dims() > 0;
  return !is_known || (spec.shape.dims() == 1 && to_int64_of(spec.dtype));
}

std::string names_of(const std::vector<FieldDescription>& fields) {
  std::string text;
  for (const FieldDescription& field : fields) text += (text.empty() ? "" : ", ") + field.name;
  return text;
}

}  // namespace

Result<std::shared_ptr<const Sequences>> sequences_of(const std::shared_ptr<const Format>& format,
                                                      const std::string& field, const std::string& name) {
  const auto rows = rows_of(format);
  const auto& fields = format->fields();
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (field.empty() ? !may_be_sequences(fields[i], rows != nullptr) : fields[i].name != field) continue;
    if (found)
      return config_error("pack_sequences: '" + fields[*found].name + "' and '" + fields[i].name +
                          "' are both lists of integers; pass field=, the one to pack");
    found = i;
  }
  if (!found && !field.empty())
    return config_error("pack_sequences: the dataset does not have the field '" + field + "'; its fields are " +
                        names_of(fields));
  if (!found || !may_be_sequences(fields[*found], rows != nullptr))
    return config_error(
        "pack_sequences: " + (found ? "the field '" + field + "' does not have" : "no field of \"" + name + "\" has") +
        " lists of integers; the fields are " + names_of(fields) +
        ", and tokens must be one-dimensional integers of any length");
  const bool has_mask = std::ranges::find(fields, "loss_mask", &FieldDescription::name) != fields.end();
  if (field.empty() && has_mask)
    return config_error("pack_sequences: the dataset has a field 'loss_mask', which packs do not apply; pass field='" +
                        fields[*found].name + "' to train on all tokens");
  if (rows) return std::make_shared<const RowSequences>(rows, *found);
  return RecordSequences::make(records_of(format), *found);
}

}  // namespace feedline::format
