// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feedline/rows.h"
#include "format/format.h"

namespace feedline::format {

// A format whose samples are rows of columns in the caller's memory.
class RowsFormat final : public RecordFormat {
 public:
  // Wraps the storage of the files to add a cache or test conditions.
  using Wrap = std::function<Result<std::shared_ptr<const storage::Storage>>(std::shared_ptr<const storage::Storage>)>;
  // kConfig: see feedline::rows().
  static Result<std::shared_ptr<const RecordFormat>> open(RowOptions options, const Wrap& wrap);

  std::string_view name() const override { return "rows"; }
  std::uint64_t size() const override { return size_; }
  const std::vector<FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return options_.classes; }
  std::vector<UnopenedColumn> unopened() const override { return options_.unopened; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  bool find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                  std::string& room) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  std::size_t most_pieces() const override { return file_fields_; }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::shared_ptr<const storage::Storage> storage() const override { return storage_; }
  Where where(std::uint64_t index) const override;
  Where where_field(std::uint64_t index, std::size_t field) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  Result<Inspection> inspect() const override;

 private:
  friend class RowsLook;  // implemented in rows_inspection.cpp

  RowsFormat(RowOptions options, std::vector<FieldDescription> fields);
  // The schemes of all URLs. A path has an empty scheme.
  struct Schemes {
    void add(const std::string& added);

    std::optional<std::string> first;
    std::string path;  // the first path or URL
    bool are_mixed = false;
  };
  // Computes the fingerprint, and collects the schemes. Fails with kConfig if a path is empty.
  Result<Schemes> scan_rows();
  // Sets the storage: the backend for all paths or, if paths have different schemes, one that selects the backend by
  // path.
  Result<void> choose_storage(const Schemes& schemes, const Wrap& wrap);
  // Sets `object` to the name of a row's file in the storage. Fails with kConfig if the URL is invalid or not
  // supported.
  Result<void> find_object(const FileColumn& column, std::uint64_t row, std::string& object, std::string& room) const;
  // Returns the field's column if the row has a file for it, otherwise nullptr.
  const FileColumn* file_column(std::uint64_t row, std::size_t field) const;
  void take_range(std::uint64_t row, std::size_t field, memory::Record::Field& value) const;
  // Returns the position for messages: "row 7 (index 'a'), column 'path'".
  std::string row_text(std::uint64_t row, std::size_t field) const;
  std::unexpected<Error> failed(std::uint64_t index, std::size_t field, Error error) const;
  Result<void> take(std::uint64_t row, std::span<const std::span<const std::byte>> files, memory::Record& record) const;

  const RowOptions options_;
  const std::vector<FieldDescription> fields_;
  std::shared_ptr<const storage::Storage> storage_;
  bool are_urls_ = false;  // of one storage, whose names of objects differ from the URLs
  std::uint64_t size_ = 0;
  std::size_t file_fields_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
