// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/dataset.h"
#include "format/arrays/array_files.h"
#include "format/format.h"

namespace feedline::format {

// Arrays in memory of which some are images, masks, boxes or keypoints: sample i is row i of each, or the rows of a
// ragged one that are its own. Pixels and labels are views of the arrays wherever kernels may read behind their end, so
// that nothing is copied; what the user writes there shows in samples that are read later.
class ArrayRecords final : public RecordFormat {
 public:
  // kConfig: as ArrayFormat::make(), but only those of images and masks must have a row; no such kind, or an array
  // whose dtype or shape is not of its kind.
  static Result<std::shared_ptr<const RecordFormat>> make(std::vector<NamedArray> arrays);

  std::string_view name() const override { return "arrays"; }
  std::uint64_t size() const override { return size_; }
  const std::vector<FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  bool is_in_memory() const override { return true; }
  Where where(std::uint64_t index) const override;
  Result<memory::OwnRow> own_row(std::uint64_t index, std::size_t field, memory::RowUse use) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  Result<Inspection> inspect() const override;

 private:
  // How the rows of an array are pixels or labels.
  struct Pixels {
    int channels = 0;        // bytes of a pixel or label; 0: the array is neither
    bool is_planar = false;  // a channel after the other
  };
  ArrayRecords(std::vector<NamedArray> arrays, std::vector<FieldDescription> fields);
  static Pixels pixels_of(const NamedArray& array, FieldKind kind);
  static Result<void> check_kind(const NamedArray& array, FieldKind kind);
  memory::PixelView view_of(std::size_t field, const Shape& shape, std::span<const std::byte> bytes,
                            memory::ByteBuffer& copied) const;

  const std::vector<NamedArray> arrays_;  // one for each field
  const ArrayFiles files_;
  const std::vector<FieldDescription> fields_;
  const std::vector<std::string> classes_;
  std::vector<Pixels> pixels_;  // of each field
  const std::uint64_t size_;
  const std::uint64_t fingerprint_;
};

}  // namespace feedline::format
