// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "pipeline/field_path.h"
#include "transform/chain.h"
#include "transform/preparation.h"

namespace feedline::pipeline {

struct ImageScratch;

// Of what comes out of a chain: with the size of the drawing, where it has any.
Shape shape_drawn(const transform::Chain& chain, const transform::Drawing& drawing);

// An image: its header is read, the geometry drawn, the needed region decoded, the steps carried out into the row.
class PixelsPath final : public FieldPath {
 public:
  // What Dataset::cache keeps, and what follows it. Its chain gives what the whole chain gives.
  struct Kept {
    std::shared_ptr<const transform::Preparation> preparation;
    std::shared_ptr<const transform::Chain> rest;
  };
  // needs_size: of the first image or mask of its sample, as what is drawn goes by the size.
  PixelsPath(std::string name, std::shared_ptr<const transform::Chain> chain, Kept kept, BatchForm form,
             bool needs_size);

  const transform::Chain& chain() const { return *chain_; }
  const transform::Chain* rest() const { return kept_.rest.get(); }  // nullptr: no pixels are kept

  std::shared_ptr<const transform::LeftElements> left(std::size_t /*entry*/) const override { return chain_->left(); }
  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> keep(const memory::Record::Field& stored, FieldWork& work,
                    format::PixelRecordBuilder& kept) const override;

  std::vector<std::string> explain() const override { return (rest() != nullptr ? *rest() : *chain_).explain(); }

  // Reads the header and draws; gives the image's size. The drawing is in the scratch.
  Result<Size> draw(const memory::Record::Field& stored, const base::SampleKey& key, FieldScratch& scratch) const;

  // Of the image as it is stored; reads the header.
  Result<Size> size(const memory::Record::Field& stored, FieldScratch& scratch) const;

  // fill() in parts, for two images of one thread whose decoders take turns, each with a scratch of its own.
  // false: fill() has to do it, or to say what is wrong; the parts that follow must not.
  bool begin(const memory::Record::Field& stored, const FieldWork& work) const;
  std::array<Result<void>, 2> decode_in_turn(FieldScratch& first, FieldScratch& second) const;
  // workspace: the one to use of the two, as its memory is in the CPU's caches.
  Result<void> finish(FieldWork& work, transform::Workspace& workspace, memory::Row& row) const;

 private:
  Result<ArrayView> place_of(memory::Row& row, const transform::Chain& chain, FieldWork& work) const;
  Result<void> check_size(Size image, FieldScratch& scratch) const;

  const std::shared_ptr<const transform::Chain> chain_;
  const Kept kept_;
  const bool needs_size_;
};

}  // namespace feedline::pipeline
