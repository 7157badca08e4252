// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/folder/pattern_index.h"
#include "format/opened_format.h"
#include "format/shards/finding.h"

namespace feedline::format {

// A folder in which each field of a sample has its own file, whose path matches the field's pattern. The samples are
// identified by the keys of these files, and sorted by key.
class PatternFormat final : public OpenedFormat {
 public:
  // Loads the stored index, or lists the folders of all fields and stores the index. Requires: options.storage and
  // options.fields are set. Fails with kConfig if a pattern is invalid or does not match any file.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source, const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

  std::string_view name() const override { return "folder"; }
  std::uint64_t size() const override { return index_.samples(); }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<bool> read_field(std::uint64_t index, std::size_t field, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const override;
  std::size_t most_pieces() const override { return fields_.size(); }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  Where where(std::uint64_t index) const override;
  Where where_field(std::uint64_t index, std::size_t field) const override;
  std::string summary() const override;

 private:
  PatternFormat(PatternQuestion question, OpenOptions options, PatternIndex index);
  bool has(std::uint64_t index, std::size_t field) const { return index_.has(index, field); }
  std::string file(std::uint64_t index, std::size_t field) const;
  Result<void> check_fields(std::uint64_t index) const;
  // Adds to record.bytes_read.
  Result<void> take_field(std::uint64_t index, std::size_t field, std::span<const std::byte> bytes,
                          memory::Record& record, memory::Record::Field& value) const;
  void inspect_file(std::uint64_t index, std::size_t field, Severity missing, Inspection& inspection,
                    Findings& findings) const;
  std::unexpected<Error> failed(std::uint64_t index, std::size_t field, Error error) const;

  const PatternQuestion question_;
  const PatternIndex index_;
};

}  // namespace feedline::format
