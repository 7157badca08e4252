// SPDX-License-Identifier: Apache-2.0
#include "pipeline/array_path.h"

#include <cstring>

#include "base/clock.h"
#include "decode/npy/npy.h"
#include "pipeline/row_shape.h"

namespace feedline::pipeline {

Result<void> ArrayPath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  const std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const decode::NpyArray array, decode::read_npy(stored.bytes));
  FEEDLINE_CHECK_OK(check_row(array.spec, spec(), "npy:", "decode"));
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
