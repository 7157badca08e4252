// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/field_path.h"
#include "transform/chain.h"
#include "transform/preparation.h"

namespace feedline::pipeline {

// What a device is left to make of rows of bytes: also where these are the elements, as of uint8.
std::shared_ptr<const transform::LeftElements> elements_on_device(const transform::Chain& chain, Layout layout);

// An image that a device keeps: what its chain does behind the cache is drawn, and written down for the device.
class KeptPixelsPath final : public FieldPath {
 public:
  // rest: the chain behind the cache. row_bytes: kept_row_bytes() and rectangles_bytes(). needs_size: as PixelsPath.
  KeptPixelsPath(std::string name, std::shared_ptr<const transform::Preparation> preparation,
                 std::shared_ptr<const transform::Chain> rest, Layout layout, std::size_t row_bytes, bool needs_size);

  std::shared_ptr<const transform::LeftElements> left(std::size_t /*entry*/) const override { return left_; }
  void add_scratch(FieldScratch& scratch) const override;
  // Requires: what is stored is an image of the device.
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> keep(const memory::Record::Field& stored, FieldWork& work,
                    format::PixelRecordBuilder& kept) const override;
  std::vector<std::string> explain() const override;

 private:
  const std::shared_ptr<const transform::Preparation> preparation_;
  const std::shared_ptr<const transform::Chain> rest_;
  const std::shared_ptr<const transform::LeftElements> left_;
  const bool needs_size_;
};

}  // namespace feedline::pipeline
