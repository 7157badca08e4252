// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/stored_path.h"

#include <cstring>
#include <utility>

#include "base/clock.h"

namespace feedline::pipeline {

StoredPath::StoredPath(std::string name, Content content, Check check)
    : FieldPath({.name = std::move(name),
                 .array = {DType::kUint8, {kAnyLength}},
                 .form = BatchForm::kList,
                 .content = content}),
      check_(check) {}

Result<void> StoredPath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  const std::uint64_t started = base::now_ns();
  FEEDLINE_CHECK_OK(check_(stored.bytes));
  FEEDLINE_TRY(const ArrayView out, destination(row, Shape{static_cast<std::int64_t>(stored.bytes.size())}, work));
  if (!stored.bytes.empty()) std::memcpy(out.data, stored.bytes.data(), stored.bytes.size());
  work.meter.count(telemetry::Stage::kDecode, started, stored.bytes.size());
  return {};
}

Result<void> StoredPath::prepare(const memory::Record::Field& stored, FieldWork& /*work*/,
                                 format::PixelRecordBuilder& cached) const {
  FEEDLINE_CHECK_OK(check_(stored.bytes));
  cached.add_bytes(stored.bytes);
  return {};
}

}  // namespace feedline::pipeline
