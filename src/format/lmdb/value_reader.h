// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts the values of a sample to its fields.

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "feedline/sample_files.h"
#include "format/lmdb/lmdb_layout.h"
#include "memory/record.h"

namespace feedline::format {

// The reason why a sample is invalid: its error, and the code of a finding.
struct ValueProblem {
  std::string_view code;
  Error error;
};

// Immutable and thread-safe.
class ValueReader {
 public:
  explicit ValueReader(LmdbLayout layout) : layout_(std::move(layout)) {}

  const LmdbLayout& layout() const { return layout_; }
  // values: one per source; nullopt if the sample lacks it. Bytes are not copied; pixels and arrays of a Datum are
  // assembled in record.more.
  std::expected<void, ValueProblem> read(std::span<const std::optional<std::span<const std::byte>>> values,
                                         memory::Record& record) const;
  // Returns the sample as files, for copying it to a tar. kConfig: decoded pixels, which cannot be written as a file.
  Result<std::vector<SampleFiles::File>> files(std::span<const std::optional<std::span<const std::byte>>> values) const;

 private:
  std::expected<void, ValueProblem> read_field(const LmdbField& field, std::span<const std::byte> value,
                                               memory::Record& record, memory::Record::Field& out) const;

  LmdbLayout layout_;
};

}  // namespace feedline::format
