// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/array_path.h"

#include <cstring>
#include <span>
#include <vector>

#include "base/clock.h"
#include "pipeline/fields/field_scratch.h"
#include "pipeline/fields/filtered_rows.h"
#include "pipeline/fields/row_shape.h"
#include "pipeline/fields/stored_array.h"

namespace feedline::pipeline {

void ArrayPath::add_scratch(FieldScratch& scratch) const {
  if (belongs_to_boxes_ && !scratch.targets) scratch.targets = std::make_unique<TargetScratch>();
}

Result<void> ArrayPath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  const std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(decode::NpyArray array, read_array(stored));
  const FilteredRows filtered(belongs_to_boxes_ ? work.scratch.targets.get() : nullptr);
  FEEDLINE_TRY(array.spec.shape, filtered.shape_of(array.spec.shape));
  FEEDLINE_CHECK_OK(check_row(array.spec, spec(), stored.array ? "array:" : "npy:", "decode"));
  FEEDLINE_TRY(const ArrayView out, destination(row, array.spec.shape, work));
  filtered.copy(array.data, out.data);
  work.meter.count(telemetry::Stage::kDecode, started, out.spec.bytes());
  return {};
}

// Any dtype and shape is accepted here: batch assembly checks which arrays fit together.
Result<void> ArrayPath::prepare(const memory::Record::Field& stored, FieldWork& work,
                                format::PixelRecordBuilder& record) const {
  FEEDLINE_TRY(decode::NpyArray array, read_array(stored));
  TargetScratch* const scratch = belongs_to_boxes_ ? work.scratch.targets.get() : nullptr;
  const FilteredRows filtered(scratch);
  if (filtered.are_all()) {
    std::vector<std::byte> file;
    if (stored.array) decode::write_npy(array.spec, array.data, file);
    record.add_bytes(stored.array ? file : stored.bytes);
    return {};
  }
  FEEDLINE_TRY(array.spec.shape, filtered.shape_of(array.spec.shape));
  scratch->rows_file.resize(array.spec.bytes());
  filtered.copy(array.data, scratch->rows_file.data());
  decode::write_npy(array.spec, scratch->rows_file, scratch->file);
  record.add_bytes(scratch->file);
  return {};
}

}  // namespace feedline::pipeline
