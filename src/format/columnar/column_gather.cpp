// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/column_gather.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "format/columnar/cell_reader.h"
#include "format/columnar/number_copy.h"
#include "memory/sample_limit.h"

namespace feedline::format {
namespace {

class ColumnGather {
 public:
  ColumnGather(const ColumnTable& table, const std::shared_ptr<const storage::Reader>& reader,
               const std::vector<PickedColumn>& choices, std::span<const GatheredRow> rows)
      : table_(table), reader_(reader), choices_(choices), rows_(rows) {}

  // Copies a column; `destination` is its element of the field, for fields of several columns.
  Result<void> copy(std::size_t slot, const FieldRows& destination) {
    const PickedColumn& choice = choices_[slot];
    const NumberConversion conversion{.from = choice.column.dtype,
                                      .to = destination.spec.dtype,
                                      .elements = static_cast<std::uint64_t>(destination.spec.shape.elements()),
                                      .null = choice.null};
    for (auto rows = rows_; !rows.empty();) {
      std::shared_ptr<const void> pin;
      FEEDLINE_TRY(const auto run, table_.numbers(*reader_, rows, slot, pin));
      if (!run) {
        FEEDLINE_CHECK_OK(copy_cell(slot, rows.front(), destination));
        rows = rows.subspan(1);
        continue;
      }
      const auto end = std::ranges::lower_bound(rows, run->end, {}, &GatheredRow::row);
      const auto here = rows.first(static_cast<std::size_t>(end - rows.begin()));
      FEEDLINE_CHECK_OK(copy_numbers(*run, here, conversion, destination.data, destination.stride));
      rows = rows.subspan(here.size());
      bytes_ += here.size() * conversion.elements * size_of(conversion.from);
    }
    return {};
  }

  std::uint64_t bytes() const { return bytes_; }

 private:
  // Reads a value that is not in a run.
  Result<void> copy_cell(std::size_t slot, const GatheredRow& row, const FieldRows& destination) {
    if (!record_) {
      record_.emplace();
      record_->most_bytes = memory::usual_sample_limit();
      record_->more.resize(1);
    }
    memory::ByteBuffer& room = record_->more.front();
    const std::size_t before = record_->bytes_read;
    FEEDLINE_TRY(const TableCell cell, read_cell(table_, reader_, row.row, slot, *record_, room));
    memory::Record::Field field;
    FEEDLINE_CHECK_OK(make_field(choices_[slot], cell, record_->most_bytes, room, field));
    bytes_ += record_->bytes_read - before;
    if (!field.array) {
      std::memcpy(destination.data + row.to * destination.stride, &field.value, sizeof field.value);
      return {};
    }
    if (*field.array != destination.spec) return data_error("a row has a different shape", "format");
    if (!field.bytes.empty())
      std::memcpy(destination.data + row.to * destination.stride, field.bytes.data(), field.bytes.size());
    return {};
  }

  const ColumnTable& table_;
  const std::shared_ptr<const storage::Reader>& reader_;
  const std::vector<PickedColumn>& choices_;
  const std::span<const GatheredRow> rows_;
  std::optional<memory::Record> record_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

bool can_gather(const std::vector<PickedColumn>& choices) {
  return std::ranges::all_of(choices, [](const PickedColumn& choice) {
    const FieldKind kind = choice.description.kind;
    // tensors whose dimensions are reordered are not copied as they are stored
    return choice.column.holds == Holds::kNumbers && choice.column.order.empty() && !choice.description.may_be_absent &&
           (kind == FieldKind::kInteger || kind == FieldKind::kArray);
  });
}

Result<std::uint64_t> gather_columns(const ColumnTable& table, const std::shared_ptr<const storage::Reader>& reader,
                                     const std::vector<PickedColumn>& choices, SlotRange slots,
                                     std::span<const GatheredRow> rows, std::span<const FieldRows> fields) {
  ColumnGather gather(table, reader, choices, rows);
  std::vector<FieldRows> destinations;  // of each slot
  for (std::size_t slot = 0, field = 0; slot < choices.size(); slot += choices[slot].members, ++field) {
    const FieldRows& row = fields[field];
    for (std::size_t member = 0; member < choices[slot].members; ++member) {
      const bool is_matrix = choices[slot].members > 1;
      const ArraySpec spec = is_matrix ? ArraySpec{row.spec.dtype, {}} : row.spec;
      destinations.push_back({row.data + member * spec.bytes(), spec, row.stride});
    }
  }
  // Threads begin with different columns, so that they decompress different pages of the first rows.
  const std::size_t count = slots.end - slots.first, first = rows.front().row % count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t slot = slots.first + (first + i) % count;
    FEEDLINE_CHECK_OK(gather.copy(slot, destinations[slot]));
  }
  return gather.bytes();
}

}  // namespace feedline::format
