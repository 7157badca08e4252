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
#include "format/columns/sample_layout.h"
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
  ColumnReader(SampleSchema schema, std::vector<ColumnChoice> fields)
      : schema_(std::move(schema)), fields_(std::move(fields)) {}

  const SampleSchema& schema() const { return schema_; }
  const std::vector<ColumnChoice>& fields() const { return fields_; }
  // Of a sample that is not compressed, or no longer. Values stay where they are in `sample`, but for pixels, numbers
  // that are text and text that is escaped, which go to record.more.
  std::expected<void, ColumnProblem> read(std::span<const std::byte> sample, memory::Record& record) const;

 private:
  SampleSchema schema_;
  std::vector<ColumnChoice> fields_;
};

}  // namespace feedline::format
