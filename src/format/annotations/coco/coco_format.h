// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/annotations/annotation_format.h"
#include "format/annotations/coco/coco_fields.h"
#include "format/annotations/coco/coco_table.h"

namespace feedline::format {

// Images with the annotations from a COCO file, sorted by image id as in torchvision's CocoDetection.
class CocoFormat final : public AnnotationFormat {
 public:
  // Loads the stored table for the JSON file, or builds it. Requires: options.storage. Fails with kConfig if a part or
  // folder is unknown.
  static Result<std::shared_ptr<const Format>> open(const std::string& source, const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

  std::string_view name() const override { return "coco"; }
  std::uint64_t size() const override { return table_.images(); }
  std::string summary() const override;

 private:
  CocoFormat(std::string source, OpenOptions options, std::string images, CocoTable table, CocoFields fields);
  std::uint64_t compute_fingerprint() const;
  std::string_view key(std::uint64_t index) const override { return table_.file_name(index); }
  Result<std::vector<std::string>> paths(std::uint64_t index) const override;
  Result<void> fill(std::uint64_t index, std::span<const std::span<const std::byte>> pieces, memory::Record& record,
                    std::size_t& piece) const override;
  Result<bool> fill_field(std::uint64_t index, std::size_t field, memory::Record& record,
                          std::string& file) const override;

  std::string images_;  // folder of the images
  CocoTable table_;
  CocoFields choice_;
};

}  // namespace feedline::format
