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
#include "format/annotations/yolo/yolo_set.h"

namespace feedline::format {

// A YOLO dataset: images, each with a text file of labels.
class YoloFormat final : public AnnotationFormat {
 public:
  // Requires: options.storage.
  static Result<std::shared_ptr<const Format>> open(const std::string& source, const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

  std::string_view name() const override { return "yolo"; }
  std::uint64_t size() const override { return set_.images.size(); }
  std::size_t most_pieces() const override { return kPieces; }
  std::string summary() const override;

 private:
  static constexpr std::size_t kPieces = 2;  // the image, whose size scales the boxes, and its labels

  YoloFormat(YoloSet set, OpenOptions options);
  std::uint64_t compute_fingerprint() const;
  std::string_view key(std::uint64_t index) const override { return set_.keys[index]; }
  Result<std::vector<std::string>> paths(std::uint64_t index) const override;
  Result<void> fill(std::uint64_t index, std::span<const std::span<const std::byte>> pieces, memory::Record& record,
                    std::size_t& piece) const override;
  Result<bool> fill_field(std::uint64_t index, std::size_t field, memory::Record& record,
                          std::string& file) const override;

  YoloSet set_;
};

}  // namespace feedline::format
