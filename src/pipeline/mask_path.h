// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/field_path.h"
#include "transform/label_chain.h"

namespace feedline::pipeline {

// An image of labels: decoded as numbers, moved as the sample's images are, never mixed or coloured.
class MaskPath final : public FieldPath {
 public:
  MaskPath(FieldSpec spec, std::shared_ptr<const transform::LabelChain> chain)
      : FieldPath(std::move(spec)), chain_(std::move(chain)) {}

  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  std::vector<std::string> explain() const override;

 private:
  const std::shared_ptr<const transform::LabelChain> chain_;
};

}  // namespace feedline::pipeline
