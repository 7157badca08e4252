// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/fields/field_path.h"
#include "transform/targets/label_chain.h"

namespace feedline::pipeline {

// The object masks of a sample, (N, height, width). Each mask is transformed like a single mask field.
class MaskStackPath final : public FieldPath {
 public:
  // belongs_to_boxes: masks are dropped with their boxes. turns_image: the sample's image is decoded with its EXIF
  // orientation.
  MaskStackPath(FieldSpec spec, std::shared_ptr<const transform::LabelChain> chain, bool belongs_to_boxes,
                bool turns_image)
      : FieldPath(std::move(spec)),
        chain_(std::move(chain)),
        belongs_to_boxes_(belongs_to_boxes),
        turns_image_(turns_image) {}

  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  // Object masks cannot be cached: make_field_path() rejects this.
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& cached) const override;
  std::vector<std::string> explain() const override;

 private:
  const std::shared_ptr<const transform::LabelChain> chain_;
  const bool belongs_to_boxes_, turns_image_;
};

}  // namespace feedline::pipeline
