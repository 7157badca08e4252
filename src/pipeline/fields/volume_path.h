// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "feedline/operation.h"
#include "pipeline/fields/field_path.h"
#include "pipeline/fields/foreground.h"
#include "transform/volume/volume_kernels.h"
#include "transform/volume/volume_operation.h"

namespace feedline::pipeline {

// The patch and the geometry of a sample, which all its volumes share. Compiled from the operations on all fields.
struct PatchPlan {
  struct Step {
    const transform::VolumeOperation* operation = nullptr;
    std::uint32_t stream = 0;  // of its random numbers
  };
  std::vector<Operation> operations;  // owns the arguments
  std::vector<std::string> volumes;   // names of the sample's volume fields, by their index in the record
  std::optional<op::Patch> patch;     // nullopt: whole volumes
  std::uint32_t stream = 0;           // of the patch's position
  bool is_grid = false;
  std::optional<op::RandomPatch> random;
  std::size_t foreground = 0;  // index of the label field, if random->foreground is not empty
  std::vector<Step> geometry;
  std::shared_ptr<ForegroundIndex> index;  // nullptr: the format has none

  bool may_interpolate() const;
  // Returns the axes of a volume with this number of dimensions that are cropped: [first, first + count).
  std::size_t count(std::size_t dims) const { return patch ? patch->size.size() : dims; }
};

// Returns the plan for the operations of a dataset. fields: all fields of its records, in order. kConfig: there are two
// patches, an operation on volumes precedes the patch, the foreground's field does not exist, or geometric operations
// name fields.
struct PatchField {
  std::string name;
  bool is_volume = false;
};
Result<std::shared_ptr<const PatchPlan>> plan_patch(const std::vector<Operation>& operations,
                                                    const std::vector<PatchField>& fields,
                                                    std::shared_ptr<ForegroundIndex> index);

// The values of a field after its operations, for a volume of this dtype: floats if an operation needs them.
DType delivered_dtype(const PatchPlan& plan, const std::vector<Operation>& own, DType stored, bool has_labels);

// A patch of a volume: the path draws the position and the geometry, reads the part of the volume that they need,
// copies or interpolates it once, and changes its values. Thread-safe; the state of a thread is in its VolumeScratch.
class VolumePath final : public FieldPath {
 public:
  // own: the operations on this field. chunk: of the first volume, for explain(). specs: the patch and, for grids, its
  // position and the shape of the volume.
  VolumePath(std::vector<FieldSpec> specs, std::shared_ptr<const PatchPlan> plan, std::vector<Operation> own,
             bool has_labels, Shape chunk);

  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override {
    return fill_rows(stored, work, {&row, 1});
  }
  Result<void> fill_rows(const memory::Record::Field& stored, FieldWork& work,
                         std::span<memory::Row> rows) const override;
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& cached) const override;
  std::vector<std::string> explain() const override;

 private:
  struct Axes;
  Result<void> draw(const memory::Record::Field& stored, FieldWork& work) const;
  // Reads the patch in the delivered dtype.
  Result<std::uint64_t> read_patch(const memory::Volume& volume, const Axes& axes, FieldWork& work,
                                   const ArrayView& out) const;
  Result<std::uint64_t> copy_patch(const memory::Volume& volume, const Axes& axes, FieldWork& work,
                                   std::byte* out) const;
  Result<std::uint64_t> interpolate(const memory::Volume& volume, const Axes& axes, FieldWork& work,
                                    std::byte* out) const;

  const std::shared_ptr<const PatchPlan> plan_;
  const std::vector<Operation> own_;
  const bool has_labels_;
  const Shape chunk_;
  std::vector<PatchPlan::Step> values_;  // operations on values
};

}  // namespace feedline::pipeline
