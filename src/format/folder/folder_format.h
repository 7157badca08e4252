// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "format/folder/folder_index.h"
#include "format/opened_format.h"

namespace feedline::format {

// A folder with one subfolder per class. Samples, indices and labels are the same as in torchvision's ImageFolder.
class FolderFormat final : public OpenedFormat {
 public:
  // Requires: options.storage.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source, const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

  std::string_view name() const override { return "folder"; }
  std::uint64_t size() const override { return index_.samples(); }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  bool find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                  std::string& room) const override;
  Result<std::optional<storage::Piece>> locate_image(std::uint64_t index, std::size_t field) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const override;
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  Where where(std::uint64_t index) const override;
  std::string summary() const override;

 private:
  std::string file(std::uint64_t index) const { return options_.storage->below(root_, index_.path(index)); }
  void doubt_listing(const Error& error) const;
  std::unexpected<Error> failed(std::uint64_t index, Error error) const;
  FolderFormat(std::string source, OpenOptions options, FolderIndex index);

  std::string root_;                                // the source without trailing slashes
  mutable std::atomic<bool> is_forgotten_ = false;  // whether the index was loaded from the cache
  FolderIndex index_;
};

}  // namespace feedline::format
