// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decode/npy/npy.h"
#include "pipeline/fields/field_path.h"
#include "transform/targets/target_chain.h"

namespace feedline::pipeline {

// Returns the dtype and shape of stored boxes or points, which are in memory, in a .npy file, or in JSON lists. dtype:
// float32 for floats and JSON, int64 for integers. shape: (N, 4), (N, 2) or (N, K, 2). kData: neither boxes nor points.
// The shape (0,) of an empty list is returned unchanged.
Result<ArraySpec> read_target_spec(transform::TargetKind kind, const memory::Record::Field& stored);

// Boxes or keypoints, which are read as numbers and transformed like the sample's images.
class TargetPath final : public FieldPath {
 public:
  // The operations before and after Dataset::cache, as in PixelsPath::CacheSplit.
  struct CacheSplit {
    std::shared_ptr<const transform::TargetChain> preparation;
    std::shared_ptr<const transform::TargetChain> rest;
  };
  // How the field depends on the other fields of its sample.
  enum class Part : std::uint8_t {
    kAlone,
    kLeads,           // the sample's only boxes: others depend on their geometry and on which of them remain
    kBelongsToBoxes,  // its rows are dropped with those
  };
  // refuses_unsound: invalid boxes are an error, because no operation drops them. turns_image: the sample's image is
  // decoded with its EXIF orientation.
  TargetPath(FieldSpec spec, std::shared_ptr<const transform::TargetChain> chain, CacheSplit split, Part part,
             bool refuses_unsound, bool turns_image)
      : FieldPath(std::move(spec)),
        chain_(std::move(chain)),
        split_(std::move(split)),
        part_(part),
        refuses_unsound_(refuses_unsound),
        turns_image_(turns_image) {}

  const transform::TargetChain& chain() const { return *chain_; }

  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& record) const override;
  std::vector<std::string> explain() const override;

  // Transforms the boxes or points before the sample's images, when the size is recorded; fill() then only writes them.
  // Requires: kLeads.
  Result<void> draw(const memory::Record::Field& stored, FieldWork& work) const;

 private:
  transform::TargetDrawing& drawing_of(FieldScratch& scratch) const;
  Result<void> read(const memory::Record::Field& stored, FieldScratch& scratch) const;
  Result<void> move(const memory::Record::Field& stored, const transform::TargetChain& chain, FieldWork& work) const;
  Shape shape_of(const transform::TargetRows& rows) const;

  const std::shared_ptr<const transform::TargetChain> chain_;
  const CacheSplit split_;
  const Part part_;
  const bool refuses_unsound_, turns_image_;
};

}  // namespace feedline::pipeline
