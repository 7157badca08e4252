// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/annotations/yolo/yolo_set.h"
#include "format/format.h"

namespace feedline::format {

// Images in YOLO's layout, each with a text file of labels.
class YoloFormat final : public RecordFormat {
 public:
  // Requires: options.storage.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source, const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

  std::string_view name() const override { return "yolo"; }
  std::uint64_t size() const override { return set_.images.size(); }
  const std::vector<FieldDescription>& fields() const override { return descriptions_; }
  const std::vector<std::string>& classes() const override { return set_.classes; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const override;
  std::size_t most_pieces() const override { return kPieces; }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::shared_ptr<const storage::Storage> storage() const override { return options_.storage; }
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  std::string summary() const override;
  Result<Inspection> inspect() const override { return inspect(set_.root, options_); }

 private:
  static constexpr std::size_t kPieces = 2;  // the image, whose size scales the boxes, and its labels

  YoloFormat(YoloSet set, OpenOptions options);
  std::uint64_t compute_fingerprint() const;
  std::vector<std::string> paths_of(std::uint64_t index) const;
  // path: of the file in error.
  std::unexpected<Error> failed(std::uint64_t index, const std::string& path, Error error) const;

  YoloSet set_;
  OpenOptions options_;
  std::vector<FieldDescription> descriptions_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
