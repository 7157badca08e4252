// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "pipeline/fields/field_path.h"
#include "transform/chain.h"
#include "transform/preparation.h"

namespace feedline::pipeline {

struct ImageScratch;

// Returns the shape of a chain's output; varying extents are those of the drawing.
Shape shape_drawn(const transform::Chain& chain, const transform::Drawing& drawing);

// An image: the path reads its header, draws the geometry, decodes the needed region, and writes the transformed row.
class PixelsPath final : public FieldPath {
 public:
  // The operations before and after Dataset::cache, which together produce the output of the whole chain.
  struct CacheSplit {
    std::shared_ptr<const transform::Preparation> preparation;
    std::shared_ptr<const transform::Chain> rest;
  };
  // needs_size: the geometry depends on the size of the sample's first image or mask.
  PixelsPath(std::string name, std::shared_ptr<const transform::Chain> chain, CacheSplit split, BatchForm form,
             bool needs_size);

  const transform::Chain& chain() const { return *chain_; }
  const transform::Chain* rest() const { return split_.rest.get(); }  // nullptr: no pixels are cached

  std::shared_ptr<const transform::DeviceElements> device_elements(std::size_t /*entry*/) const override {
    return chain_->device_elements();
  }
  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& cached) const override;

  std::vector<std::string> explain() const override { return (rest() != nullptr ? *rest() : *chain_).explain(); }

  // Reads the header and draws the geometry into the scratch memory; returns the image's size.
  Result<Size> draw(const memory::Record::Field& stored, const base::SampleKey& key, FieldScratch& scratch) const;

  // Returns the size of the stored image from its header.
  Result<Size> size(const memory::Record::Field& stored, FieldScratch& scratch) const;

  // The parts of fill(), for two images of one thread whose decoding is interleaved; each image has its own scratch
  // memory. If begin() returns false, call fill() instead of the other parts; fill() also reports errors.
  bool begin(const memory::Record::Field& stored, const FieldWork& work) const;
  std::array<Result<void>, 2> decode_in_turn(FieldScratch& first, FieldScratch& second) const;
  // workspace: the workspace that both images share, whose memory is in the CPU's caches.
  Result<void> finish(FieldWork& work, transform::Workspace& workspace, memory::Row& row) const;

 private:
  Result<ArrayView> destination_of(memory::Row& row, const transform::Chain& chain, FieldWork& work) const;
  Result<void> check_size(Size image, FieldScratch& scratch) const;

  const std::shared_ptr<const transform::Chain> chain_;
  const CacheSplit split_;
  const bool needs_size_;
};

}  // namespace feedline::pipeline
