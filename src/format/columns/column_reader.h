// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a stored sample to its fields.

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "format/columns/column.h"
#include "memory/record.h"

namespace feedline::format {

// Why a sample is none: its error, and the code of a finding.
struct ColumnProblem {
  std::string_view code;
  Error error;
};

// Immutable; any thread may use it.
class ColumnReader {
 public:
  // is_one_value: a sample is the value of the one column, without a size in front.
  ColumnReader(Columns columns, std::vector<ColumnChoice> fields, bool is_one_value)
      : columns_(std::move(columns)), fields_(std::move(fields)), is_one_value_(is_one_value) {}

  const Columns& columns() const { return columns_; }
  const std::vector<ColumnChoice>& fields() const { return fields_; }
  bool is_one_value() const { return is_one_value_; }
  // Values stay where they are in `sample`, but for pixels and numbers that are text, which go to record.more.
  std::expected<void, ColumnProblem> read(std::span<const std::byte> sample, memory::Record& record) const;

 private:
  Columns columns_;
  std::vector<ColumnChoice> fields_;
  bool is_one_value_;
};

}  // namespace feedline::format
