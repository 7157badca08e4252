// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/annotations/coco/coco_fields.h"
#include "format/annotations/coco/coco_table.h"
#include "format/format.h"

namespace feedline::format {

// Images with the annotations of a COCO file, sorted by image id, as in torchvision's CocoDetection.
class CocoFormat final : public RecordFormat {
 public:
  // Loads the stored table of the JSON, or builds it. Requires: options.storage. kConfig: unknown part or folder.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source, const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

  std::string_view name() const override { return "coco"; }
  std::uint64_t size() const override { return table_.images(); }
  const std::vector<FieldDescription>& fields() const override { return descriptions_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const override;
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::shared_ptr<const storage::Storage> storage() const override { return options_.storage; }
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  std::string summary() const override;
  Result<Inspection> inspect() const override { return inspect(source_, options_); }

 private:
  CocoFormat(std::string source, OpenOptions options, std::string images, CocoTable table, CocoFields fields);
  std::string file(std::uint64_t index) const { return options_.storage->below(images_, table_.file_name(index)); }
  bool needs_image() const { return has_part(fields_.fields(), Part::kImage); }
  std::uint64_t compute_fingerprint() const;
  // Adds the sample's location to `error`; the error of an annotation is located in the JSON.
  std::unexpected<Error> failed(std::uint64_t index, Error error) const;

  std::string source_;
  OpenOptions options_;
  std::string images_;  // folder of the images
  CocoTable table_;
  CocoFields fields_;
  std::vector<FieldDescription> descriptions_;
  std::vector<std::string> classes_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
