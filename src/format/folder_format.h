// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/folder_listing.h"
#include "format/format.h"

namespace feedline::format {

// A folder with one folder per class, as torchvision's ImageFolder: the same samples, indices and labels.
class FolderFormat final : public Format {
 public:
  // Requires: options.storage.
  static Result<std::shared_ptr<const Format>> open(const std::string& source, const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

  std::string_view name() const override { return "folder"; }
  std::uint64_t size() const override { return listing_.samples(); }
  const std::vector<FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return listing_.classes; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  Result<Inspection> inspect() const override;

 private:
  FolderFormat(std::string source, std::shared_ptr<const storage::Storage> storage, FolderListing listing);

  std::string source_;
  std::string root_;  // source without slashes at its end
  std::shared_ptr<const storage::Storage> storage_;
  FolderListing listing_;
  std::vector<FieldDescription> fields_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
