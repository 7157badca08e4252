// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/folder/field_pattern.h"
#include "format/format.h"

namespace feedline::format {

// A folder with a file for each field of a sample, found by patterns: samples are the keys that files are there for,
// sorted.
class PatternFormat final : public RecordFormat {
 public:
  // Lists the folders of all fields. Requires: options.storage, and fields. kConfig: no pattern, or no file for one.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source, const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

  std::string_view name() const override { return "folder"; }
  std::uint64_t size() const override { return keys_.size(); }
  const std::vector<FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  std::string summary() const override;
  Result<Inspection> inspect() const override;

 private:
  PatternFormat(std::string source, OpenOptions options, std::vector<FieldPattern> patterns);
  // keys: of each field, sorted.
  void take_samples(std::span<const std::vector<std::string>> keys);
  std::uint64_t compute_fingerprint() const;
  bool has(std::uint64_t index, std::size_t field) const { return lacks_[field].empty() || !lacks_[field][index]; }
  std::string file(std::uint64_t index, std::size_t field) const;
  Result<void> read_field(std::uint64_t index, std::size_t field, std::span<std::byte> room,
                          const storage::Reader& reader, memory::Record& record) const;
  std::unexpected<Error> failed(std::uint64_t index, std::size_t field, Error error) const;

  std::string source_;
  OpenOptions options_;
  std::vector<FieldPattern> patterns_;
  std::vector<FieldDescription> fields_;
  std::vector<std::string> classes_;      // none
  std::vector<std::string> keys_;         // sorted
  std::vector<std::vector<bool>> lacks_;  // per field: which samples have no file; none: all have one
  std::uint64_t left_out_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
