// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/opened_format.h"
#include "format/text_tables/column_choice.h"
#include "format/text_tables/table.h"
#include "format/text_tables/table_source.h"

namespace feedline::format {

// A table in memory whose rows are samples. Fields are the files that cells name, or the values of cells.
class TableFormat final : public OpenedFormat {
 public:
  // Requires: options.storage.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source, const TableLocations& locations,
                                                          const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const TableLocations& locations,
                                    const OpenOptions& options);

  std::string_view name() const override { return "table"; }
  std::uint64_t size() const override { return rows_.empty() ? table_.rows() : rows_.size(); }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  bool find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                  std::string& room) const override;
  std::uint64_t grain() const override { return grain_; }
  Result<std::uint64_t> gather(std::span<const SampleRow> samples,
                               std::span<const ArrayView> first_rows) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  std::size_t most_pieces() const override { return file_fields_; }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::vector<UnopenedColumn> unopened() const override {
    return unopened_columns(choices_, options_.fields.empty(), table_);
  }
  std::vector<FieldRemark> remarks() const override { return remarks_of(choices_, table_); }
  std::string summary() const override;
  Where where(std::uint64_t index) const override;
  Where where_field(std::uint64_t index, std::size_t field) const override;

  // Returns the key of a row. The key is the row's number, zero-padded so that sorted keys are in row order.
  static std::string key_of(std::uint64_t row);

 private:
  friend class TableLook;  // implemented in table_inspection.cpp

  TableFormat(std::string source, TableLocations locations, OpenOptions options, ReadTable read,
              std::vector<ColumnField> fields);
  const TableLocation& find_sample(std::uint64_t row) const;
  void leave_out();
  std::uint64_t compute_fingerprint() const;
  std::uint64_t row_of(std::uint64_t index) const { return rows_.empty() ? index : rows_[index]; }
  bool has(std::uint64_t row, std::size_t field) const { return !choices_[field].absent[row]; }
  std::string_view cell(std::uint64_t row, std::size_t field) const {
    return table_.columns[choices_[field].column].cell(row);
  }
  Result<void> check_row(std::uint64_t row) const;
  Result<void> take(std::uint64_t row, std::span<const std::span<const std::byte>> files, memory::Record& record) const;
  std::unexpected<Error> failed(std::uint64_t index, std::size_t field, Error error) const;

  const TableLocations locations_;
  const Table table_;
  const std::vector<std::uint64_t> file_ends_;  // cumulative number of rows, per file
  std::vector<ColumnField> choices_;
  std::size_t file_fields_ = 0;
  std::uint64_t grain_ = 1;
  std::vector<std::uint64_t> rows_;  // row of each sample; empty if all rows are samples
  std::uint64_t left_out_ = 0;
};

}  // namespace feedline::format
