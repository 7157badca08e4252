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

// Arrays in memory, some of which are images, masks, boxes or keypoints. Sample i is row i of each array, or several
// rows of a ragged array. If kernels may read past the end of an image or mask, it is used without copying. Samples
// that are read later then contain the values that the user has written to the arrays in the meantime.
class ArrayRecords final : public RecordFormat {
 public:
  // Fails with kConfig in the same cases as ArrayFormat::make(), and if a kind is unknown or does not match the dtype
  // or shape of its array. Samples may be empty, except images and masks.
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
  // The pixel layout of an array's rows.
  struct Pixels {
    int channels = 0;        // bytes per pixel or label; 0 for other arrays
    bool is_planar = false;  // one channel after another
  };
  ArrayRecords(std::vector<NamedArray> arrays, std::vector<FieldDescription> fields);
  static Pixels pixels_of(const NamedArray& array, FieldKind kind);
  static Result<void> check_kind(const NamedArray& array, FieldKind kind);
  memory::PixelView view_of(std::size_t field, const Shape& shape, std::span<const std::byte> bytes,
                            memory::ByteBuffer& copied) const;

  const std::vector<NamedArray> arrays_;  // one per field
  const ArrayFiles files_;
  const std::vector<FieldDescription> fields_;
  const std::vector<std::string> classes_;
  std::vector<Pixels> pixels_;  // one per field
  const std::uint64_t size_;
  const std::uint64_t fingerprint_;
};

}  // namespace feedline::format
