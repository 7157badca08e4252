// SPDX-License-Identifier: Apache-2.0
#pragma once

// Opens arrays from files as rows, or as records with images, like arrays in memory. Errors contain the names of the
// files.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/checksum.h"
#include "format/format.h"
#include "format/numpy_files/array_file.h"

namespace feedline::format {

// Opens one or several files, whose rows are concatenated. Each field has a spec, "[NAME=]ARRAY[:KIND]", or
// "[NAME][:KIND]" for a .npy file. Without specs, all arrays are fields of their default kinds. Fails with kConfig if
// an array or kind is unknown, arrays have different numbers of rows, or files have different arrays.
Result<std::shared_ptr<const Format>> open_numpy(const std::string& source, const std::vector<std::string>& files,
                                                 const OpenOptions& options);
// Opens the files and reports problems of each file. Requires: options.storage.
Result<Inspection> inspect_numpy(const std::string& source, const std::vector<std::string>& files,
                                 const OpenOptions& options);

// Maps rows to files.
struct NumpyFiles {
  std::string source;
  std::vector<std::string> paths;
  std::vector<std::uint64_t> ends;       // cumulative number of rows, per file
  std::vector<UnopenedColumn> unopened;  // arrays that are not used by a field
};

// `Kind` is RowFormat or RecordFormat. Immutable and thread-safe.
template <typename Kind>
class NumpyFormat : public Kind {
 public:
  NumpyFormat(std::shared_ptr<const Kind> arrays, NumpyFiles files, OpenOptions options)
      : arrays_(std::move(arrays)), files_(std::move(files)), options_(std::move(options)) {}

  std::string_view name() const final { return "numpy"; }
  std::uint64_t size() const final { return arrays_->size(); }
  const std::vector<FieldDescription>& fields() const final { return arrays_->fields(); }
  const std::vector<std::string>& classes() const final { return arrays_->classes(); }
  std::uint64_t grain() const final { return arrays_->grain(); }
  Where where(std::uint64_t index) const final {
    const auto end = std::ranges::upper_bound(files_.ends, index);
    const std::uint64_t before = end == files_.ends.begin() ? 0 : *std::prev(end);
    Where where = arrays_->where(index);
    where.dataset = files_.source;
    where.shard = files_.paths[static_cast<std::size_t>(end - files_.ends.begin())];
    where.key = "row " + std::to_string(index - before);
    return where;
  }
  std::vector<UnopenedColumn> unopened() const final { return files_.unopened; }
  Result<memory::OwnRow> own_row(std::uint64_t index, std::size_t field, memory::RowUse use) const final {
    return arrays_->own_row(index, field, use);
  }
  std::uint64_t fingerprint() const final {
    Fingerprint fingerprint;
    fingerprint.add(name());
    fingerprint.add(arrays_->fingerprint());
    return fingerprint.value();
  }
  Result<Inspection> inspect() const final { return format::inspect(files_.source, options_); }

 protected:
  const Kind& arrays() const { return *arrays_; }

 private:
  const std::shared_ptr<const Kind> arrays_;
  const NumpyFiles files_;
  const OpenOptions options_;
};

class NumpyRows final : public NumpyFormat<RowFormat> {
 public:
  using NumpyFormat::NumpyFormat;
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                             std::span<const ArrayView> first_rows) const override {
    return arrays().fill(samples, first_rows);
  }
};

class NumpyRecords final : public NumpyFormat<RecordFormat> {
 public:
  using NumpyFormat::NumpyFormat;
  Result<void> read(std::uint64_t index, memory::Record& record) const override { return arrays().read(index, record); }
  bool is_in_memory() const override { return true; }
};

}  // namespace feedline::format
