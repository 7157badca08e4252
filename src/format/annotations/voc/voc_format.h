// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/annotations/image_size.h"
#include "format/annotations/voc/voc_set.h"
#include "format/format.h"

namespace feedline::format {

// A folder in Pascal VOC's layout, as read by torchvision's VOCDetection and VOCSegmentation. Of a sample's image, XML
// and PNGs, reads only those that its fields need.
class VocFormat final : public RecordFormat {
 public:
  // Requires: options.storage.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source, const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

  std::string_view name() const override { return "voc"; }
  std::uint64_t size() const override { return set_.keys.size(); }
  const std::vector<FieldDescription>& fields() const override { return descriptions_; }
  const std::vector<std::string>& classes() const override { return set_.classes; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const override;
  std::size_t most_pieces() const override { return most_pieces_; }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::shared_ptr<const storage::Storage> storage() const override { return options_.storage; }
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  std::string summary() const override;
  Result<Inspection> inspect() const override { return inspect(set_.root, options_); }

 private:
  VocFormat(VocSet set, OpenOptions options);
  std::uint64_t compute_fingerprint() const;
  // The files of a sample: its image, its XML and its masks. kData: the image is missing.
  Result<std::vector<std::string>> paths_of(std::uint64_t index) const;
  // stated: the image size in the XML.
  Result<void> take_objects(std::span<const std::byte> xml, memory::Record& record, ImageSize& stated) const;
  // path: of the file in error; empty for the sample's first file.
  std::unexpected<Error> failed(std::uint64_t index, const std::string& path, Error error) const;

  VocSet set_;
  OpenOptions options_;
  std::vector<FieldDescription> descriptions_;
  std::vector<std::size_t> masks_;  // fields stored as files of labels
  std::size_t most_pieces_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
