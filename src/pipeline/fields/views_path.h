// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/planes.h"
#include "pipeline/fields/field_path.h"
#include "transform/chain.h"
#include "transform/preparation.h"
#include "transform/shared_steps.h"

namespace feedline::pipeline {

struct ViewScratch;

// The views of an image: the path reads the image's header, draws all views, decodes their regions together (or
// separately if that is cheaper), and writes the result of each view's steps.
class ViewsPath final : public FieldPath {
 public:
  struct View {
    std::shared_ptr<const transform::Chain> chain;
    std::string name;       // "global_a", "local[3]"
    std::size_t field = 0;  // index in specs()
    std::size_t index = 0;  // index in the field's array
    bool is_stacked = false;
  };
  // The operations before Dataset::cache, and the shared operations after it.
  struct CacheSplit {
    std::shared_ptr<const transform::Preparation> preparation;
    std::shared_ptr<const transform::SharedSteps> shared;
  };
  // image: the source field of the views. needs_size: as in PixelsPath.
  ViewsPath(std::string image, std::vector<FieldSpec> specs, std::vector<View> views,
            std::shared_ptr<const transform::SharedSteps> shared, CacheSplit split, bool needs_size);

  ColorMode color_mode() const { return shared_->color_mode(); }
  bool applies_exif() const { return shared_->applies_exif(); }
  Fidelity fidelity() const { return shared_->fidelity(); }

  std::shared_ptr<const transform::DeviceElements> device_elements(std::size_t entry) const override;
  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override {
    return fill_rows(stored, work, {&row, 1});
  }
  Result<void> fill_rows(const memory::Record::Field& stored, FieldWork& work,
                         std::span<memory::Row> rows) const override;
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& cached) const override;
  std::vector<std::string> explain() const override;

  // A region of a sample to decode, optionally to planes; valid until the scratch memory is used again.
  struct Region {
    Box box;
    std::optional<memory::Coarseness> planes;
  };
  Result<void> find_regions(const memory::Record::Field& stored, const base::SampleKey& key, FieldScratch& scratch,
                            std::vector<Region>& regions) const;
  // Returns the values drawn for an image of this size, as text.
  Result<std::vector<DrawnValue>> values(Size image, const base::SampleKey& key) const;

 private:
  const transform::SharedSteps& shared(bool is_prepared) const { return is_prepared ? *split_.shared : *shared_; }
  // Draws all views and their shared steps into the scratch memory.
  Result<void> draw(Size image, const base::SampleKey& key, bool is_prepared, FieldScratch& scratch) const;
  // Returns whether each view is decoded separately.
  bool is_made_apart(const memory::Record::Field& stored, bool is_prepared, FieldScratch& scratch) const;
  Result<void> set_destinations(FieldWork& work, std::span<memory::Row> rows) const;
  ArrayView destination_of(std::size_t view, const ViewScratch& scratch) const;
  Result<void> make_at_once(const memory::Record::Field& stored, Size image, FieldWork& work,
                            std::uint64_t started_ns) const;
  Result<bool> make_of_planes(const Box& all, FieldWork& work, std::uint64_t started_ns) const;
  Result<void> make_apart(const memory::Record::Field& stored, FieldWork& work, std::uint64_t started_ns) const;
  std::string explain_decoding() const;

  const std::string image_;
  const std::vector<View> views_;
  const std::shared_ptr<const transform::SharedSteps> shared_;
  const CacheSplit split_;
  const bool needs_size_;
};

}  // namespace feedline::pipeline
