// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/annotations/annotation_part.h"
#include "format/checksum.h"
#include "format/opened_format.h"

namespace feedline::format {

// Base class of the formats of annotated images. A sample consists of whole files, from which the derived class fills
// the fields.
class AnnotationFormat : public OpenedFormat {
 public:
  Result<void> read(std::uint64_t index, memory::Record& record) const final;
  Result<bool> read_field(std::uint64_t index, std::size_t field, memory::Record& record) const final;
  Result<SampleFiles> files(std::uint64_t index) const final;
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const final;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const final;
  Where where(std::uint64_t index) const final;

 protected:
  AnnotationFormat(std::string source, OpenOptions options, std::vector<PartField> parts);
  bool needs_image() const { return has_part(parts_, Part::kImage); }
  // Adds the fields' names and parts.
  void add_parts(Fingerprint& fingerprint) const;

  const std::vector<PartField> parts_;  // one per field

 private:
  void clear(memory::Record& record) const;
  // The functions below require: index < size().
  virtual std::string_view key(std::uint64_t index) const = 0;
  // Returns the paths of the sample's files, the image first. Fails with kData if the image is missing.
  virtual Result<std::vector<std::string>> paths(std::uint64_t index) const = 0;
  // Returns the name from which pack derives the sample's key and the extension of its image.
  virtual std::string packed_name(std::uint64_t index) const { return std::string(key(index)); }
  // Fills the fields of a cleared record from the contents of paths(). `piece` is the file in use, which is 0 at the
  // start; on failure, it is the location of the error, unless the error has a shard.
  virtual Result<void> fill(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                            memory::Record& record, std::size_t& piece) const = 0;
  // Fills record.fields.front() of a cleared record with one field. `file` is the path of the file that is read, and
  // empty at the start. Returns false if the field needs fill().
  virtual Result<bool> fill_field(std::uint64_t index, std::size_t field, memory::Record& record,
                                  std::string& file) const = 0;
};

}  // namespace feedline::format
