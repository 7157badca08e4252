// SPDX-License-Identifier: Apache-2.0
#include "pipeline/array_path.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "decode/npy/npy.h"

namespace feedline::pipeline {
namespace {

// Has the row the extents that all rows have?
bool fits(const Shape& row, const FieldSpec& field) {
  const Shape& shape = field.array.shape;
  if (field.form == BatchForm::kList) return true;
  return row.dims() == shape.dims() && std::equal(row.begin(), row.end(), shape.begin(), [](auto here, auto there) {
           return there == kAnyLength || here == there;
         });
}

std::string what_helps(const FieldSpec& field) {
  return field.form == BatchForm::kDense ? "collate(\"pad\") takes a first extent that differs, collate(\"list\") any"
                                         : "collate(\"list\") takes any";
}

}  // namespace

Result<void> ArrayPath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  const std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const decode::NpyArray array, decode::read_npy(stored.bytes));
  const ArraySpec& all = spec().array;
  const auto text = [](const ArraySpec& array_spec) {
    return std::string(name_of(array_spec.dtype)) + array_spec.shape.to_string();
  };
  if (array.spec.dtype != all.dtype)
    return data_error("npy: an array of " + text(array.spec) + ", and that of the first sample is " +
                          std::string(name_of(all.dtype)) + "; save all of one dtype",
                      "decode");
  if (!fits(array.spec.shape, spec()))
    return data_error(
        "npy: an array of " + text(array.spec) + ", where all are " + text(all) + "; " + what_helps(spec()), "decode");
  FEEDLINE_TRY(const ArrayView out, place(row, array.spec.shape, work));
  if (!array.data.empty()) std::memcpy(out.data, array.data.data(), array.data.size());
  work.meter.count(telemetry::Stage::kDecode, started, array.data.size());
  return {};
}

// Of any dtype and shape: which ones fit is a matter of how rows are put together.
Result<void> ArrayPath::keep(const memory::Record::Field& stored, FieldWork& /*work*/,
                             format::PixelRecordBuilder& kept) const {
  if (const auto array = decode::read_npy(stored.bytes); !array) return std::unexpected(array.error());
  kept.add_bytes(stored.bytes);
  return {};
}

}  // namespace feedline::pipeline
