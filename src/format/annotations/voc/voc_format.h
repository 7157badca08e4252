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
#include "format/annotations/image_size.h"
#include "format/annotations/voc/voc_set.h"

namespace feedline::format {

// A folder with the Pascal VOC layout, which torchvision's VOCDetection and VOCSegmentation read. For each sample,
// reads only the files that its fields need: the image, the XML file or PNG masks.
class VocFormat final : public AnnotationFormat {
 public:
  // Requires: options.storage.
  static Result<std::shared_ptr<const Format>> open(const std::string& source, const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

  std::string_view name() const override { return "voc"; }
  std::uint64_t size() const override { return set_.keys.size(); }
  std::size_t most_pieces() const override { return most_pieces_; }
  std::string summary() const override;

 private:
  VocFormat(VocSet set, OpenOptions options);
  std::uint64_t compute_fingerprint() const;
  std::string_view key(std::uint64_t index) const override { return set_.keys[index]; }
  Result<std::vector<std::string>> paths(std::uint64_t index) const override;
  std::string packed_name(std::uint64_t index) const override;
  Result<void> fill(std::uint64_t index, std::span<const std::span<const std::byte>> pieces, memory::Record& record,
                    std::size_t& piece) const override;
  Result<bool> fill_field(std::uint64_t index, std::size_t field, memory::Record& record,
                          std::string& file) const override;
  // Fills the fields that contain objects, where `pieces` is the number of buffers already in record.more. Sets
  // `stated` to the image size in the XML file.
  Result<void> take_objects(std::span<const std::byte> xml, std::span<const PartField> fields, std::size_t pieces,
                            memory::Record& record, ImageSize& stated) const;

  VocSet set_;
  std::vector<std::size_t> masks_;  // fields stored as files of labels
  std::size_t most_pieces_ = 0;
};

}  // namespace feedline::format
