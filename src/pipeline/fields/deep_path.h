// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decode/deep_decoder.h"
#include "pipeline/fields/field_path.h"
#include "transform/deep/deep_chain.h"

namespace feedline::pipeline {

// Reads the header of a stored image as the operations' decode() requires. kData: the image is stored as 8-bit pixels
// instead of a file.
Result<decode::DeepHeader> open_deep_image(const memory::Record::Field& stored,
                                           const std::vector<Operation>& operations, decode::DeepDecoder& decoder);

// An image with the stored values of its file, of any dtype and number of channels: decode(dtype=).
class DeepPath final : public FieldPath {
 public:
  DeepPath(std::string name, std::shared_ptr<const transform::DeepChain> chain, BatchForm form)
      : FieldPath({.name = std::move(name), .array = chain->output(), .form = form}), chain_(std::move(chain)) {}

  const transform::DeepChain& chain() const { return *chain_; }
  // Returns the size of the stored image from its header.
  Result<Size> size(const memory::Record::Field& stored, FieldScratch& scratch) const;
  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& cached) const override;
  std::vector<std::string> explain() const override { return chain_->explain(); }

 private:
  const std::shared_ptr<const transform::DeepChain> chain_;
};

}  // namespace feedline::pipeline
