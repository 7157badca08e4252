// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/finding.h"
#include "format/folder/pattern_index.h"
#include "format/format.h"

namespace feedline::format {

// A folder with one file per field of a sample, found by patterns. The samples are the keys that have files, sorted.
class PatternFormat final : public RecordFormat {
 public:
  // Loads the stored index, or lists the folders of all fields and stores the index. Requires: options.storage, and
  // fields. kConfig: an invalid pattern, or a pattern that matches no file.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source, const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

  std::string_view name() const override { return "folder"; }
  std::uint64_t size() const override { return index_.samples(); }
  const std::vector<FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const override;
  std::size_t most_pieces() const override { return fields_.size(); }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::shared_ptr<const storage::Storage> storage() const override { return options_.storage; }
  Where where(std::uint64_t index) const override;
  Where where_field(std::uint64_t index, std::size_t field) const override;
  std::uint64_t fingerprint() const override { return index_.fingerprint(); }
  std::string summary() const override;
  Result<Inspection> inspect() const override;

 private:
  PatternFormat(PatternQuestion question, OpenOptions options, PatternIndex index);
  bool has(std::uint64_t index, std::size_t field) const { return index_.has(index, field); }
  std::string file(std::uint64_t index, std::size_t field) const;
  Result<void> check_fields(std::uint64_t index) const;
  Result<void> take_field(std::uint64_t index, std::size_t field, std::span<const std::byte> bytes,
                          memory::Record& record) const;
  void inspect_file(std::uint64_t index, std::size_t field, Severity missing, Inspection& inspection,
                    Findings& findings) const;
  std::unexpected<Error> failed(std::uint64_t index, std::size_t field, Error error) const;

  const PatternQuestion question_;
  const OpenOptions options_;
  const PatternIndex index_;
  std::vector<FieldDescription> fields_;
  std::vector<std::string> classes_;  // none
};

}  // namespace feedline::format
