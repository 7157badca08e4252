// SPDX-License-Identifier: Apache-2.0
#pragma once

// From the values of a sample to its fields.

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

// Why a sample is none: its error, and the code of a finding.
struct ValueProblem {
  std::string_view code;
  Error error;
};

// Immutable; any thread may use it.
class ValueReader {
 public:
  explicit ValueReader(LmdbLayout layout) : layout_(std::move(layout)) {}

  const LmdbLayout& layout() const { return layout_; }
  // values: one for each source; nullopt: the sample lacks it. Bytes stay where they are; pixels and arrays of a Datum
  // are put together in record.more.
  std::expected<void, ValueProblem> read(std::span<const std::optional<std::span<const std::byte>>> values,
                                         memory::Record& record) const;
  // The same as files, for copying the sample to a tar. kConfig: pixels that are stored decoded, of which none is made.
  Result<std::vector<SampleFiles::File>> files(std::span<const std::optional<std::span<const std::byte>>> values) const;

 private:
  std::expected<void, ValueProblem> read_field(const LmdbField& field, std::span<const std::byte> value,
                                               memory::Record& record, memory::Record::Field& out) const;

  LmdbLayout layout_;
};

}  // namespace feedline::format
