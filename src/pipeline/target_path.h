// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decode/npy/npy.h"
#include "pipeline/field_path.h"
#include "transform/targets/target_chain.h"

namespace feedline::pipeline {

// The dtype and shape of boxes or points as they are stored, in memory, in a .npy file or as lists in JSON: float32 of
// all floats and of JSON, int64 of all integers; (N, 4) or (N, 2) or (N, K, 2). kData: it is neither. The shape (0,) of
// an empty list is taken as it is.
Result<ArraySpec> read_target_spec(transform::TargetKind kind, const memory::Record::Field& stored);

// Boxes or keypoints: read as numbers, moved as the sample's images are.
class TargetPath final : public FieldPath {
 public:
  // What Dataset::cache keeps, and what follows it, as PixelsPath::Kept.
  struct Kept {
    std::shared_ptr<const transform::TargetChain> preparation;
    std::shared_ptr<const transform::TargetChain> rest;
  };
  // How the field stands to others of its sample.
  enum class Part : std::uint8_t {
    kAlone,
    kLeads,           // the sample's only boxes: others go by what is drawn for them, and by which of them are left
    kBelongsToBoxes,  // its rows go with those
  };
  // refuses_unsound: boxes that no image can have are an error of their sample, as nothing leaves them out.
  // turns_image: the sample's image is decoded with its EXIF orientation applied.
  TargetPath(FieldSpec spec, std::shared_ptr<const transform::TargetChain> chain, Kept kept, Part part,
             bool refuses_unsound, bool turns_image)
      : FieldPath(std::move(spec)),
        chain_(std::move(chain)),
        kept_(std::move(kept)),
        part_(part),
        refuses_unsound_(refuses_unsound),
        turns_image_(turns_image) {}

  const transform::TargetChain& chain() const { return *chain_; }

  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> keep(const memory::Record::Field& stored, FieldWork& work,
                    format::PixelRecordBuilder& record) const override;
  std::vector<std::string> explain() const override;

  // Moves them before the sample's images are drawn, whose size is noted. fill() has nothing left to do then but to
  // write them. Requires: it leads.
  Result<void> draw(const memory::Record::Field& stored, FieldWork& work) const;

 private:
  transform::TargetDrawing& drawing_of(FieldScratch& scratch) const;
  Result<void> read(const memory::Record::Field& stored, FieldScratch& scratch) const;
  Result<void> move(const memory::Record::Field& stored, const transform::TargetChain& chain, FieldWork& work) const;
  Shape shape_of(const transform::TargetRows& rows) const;

  const std::shared_ptr<const transform::TargetChain> chain_;
  const Kept kept_;
  const Part part_;
  const bool refuses_unsound_, turns_image_;
};

}  // namespace feedline::pipeline
