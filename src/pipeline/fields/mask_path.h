// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "decode/labels.h"
#include "pipeline/fields/field_path.h"
#include "transform/targets/label_chain.h"

namespace feedline::pipeline {

// Returns the size and dtype of a stored mask, from the header of its file or from its raw labels.
Result<decode::LabelHeader> open_labels(const memory::Record::Field& stored, decode::LabelDecoder& decoder);

// An image of labels: decoded as integers, and transformed geometrically like the sample's images, but never
// interpolated or changed in colour.
class MaskPath final : public FieldPath {
 public:
  // The operations before and after Dataset::cache, as in PixelsPath::CacheSplit.
  struct CacheSplit {
    std::shared_ptr<const transform::LabelChain> preparation;
    std::shared_ptr<const transform::LabelChain> rest;
  };
  // turns_image: the sample's image is decoded with its EXIF orientation.
  MaskPath(FieldSpec spec, std::shared_ptr<const transform::LabelChain> chain, CacheSplit split, bool turns_image)
      : FieldPath(std::move(spec)), chain_(std::move(chain)), split_(std::move(split)), turns_image_(turns_image) {}

  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& cached) const override;
  std::vector<std::string> explain() const override;

 private:
  Result<memory::PixelView> draw(const memory::Record::Field& stored, const transform::LabelChain& chain,
                                 FieldWork& work) const;

  const std::shared_ptr<const transform::LabelChain> chain_;
  const CacheSplit split_;
  const bool turns_image_;
};

}  // namespace feedline::pipeline
