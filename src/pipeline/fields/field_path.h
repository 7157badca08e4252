// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "feedline/array.h"
#include "feedline/error.h"
#include "format/pixels/pixel_record.h"
#include "memory/record.h"
#include "memory/row.h"
#include "memory/sample_limit.h"
#include "pipeline/fields/stage_meter.h"

namespace feedline::transform {
struct DeviceElements;
}

namespace feedline::pipeline {

struct FieldScratch;

// Context for making the fields of one sample.
struct FieldWork {
  const base::SampleKey& key;  // for random draws
  FieldScratch& scratch;       // the thread's
  StageMeter& meter;
  bool is_prepared = false;                              // the stored bytes were made by prepare()
  std::uint64_t most_bytes = memory::kLeastSampleBytes;  // limit if its size is only known now (sample_limit.h)
  const memory::Record* record = nullptr;                // all fields of the sample
};

// Converts one field of a sample from its stored bytes to one row of a batch, or several. Immutable and thread-safe,
// because the state of each thread is in its FieldScratch.
class FieldPath {
 public:
  explicit FieldPath(FieldSpec spec) { specs_.push_back(std::move(spec)); }
  explicit FieldPath(std::vector<FieldSpec> specs) : specs_(std::move(specs)) {}  // Requires: at least one
  virtual ~FieldPath() = default;
  FieldPath(const FieldPath&) = delete;
  FieldPath& operator=(const FieldPath&) = delete;

  const std::vector<FieldSpec>& specs() const { return specs_; }  // its entries of the schema, one for each row
  const FieldSpec& spec() const { return specs_.front(); }        // for paths with one row
  // Returns the work on the images of schema entry `entry` that is left to the device; nullptr if there is none.
  virtual std::shared_ptr<const transform::DeviceElements> device_elements(std::size_t /*entry*/) const {
    return nullptr;
  }
  // Creates the thread's scratch memory for fill() and prepare() if it does not exist.
  virtual void add_scratch(FieldScratch& /*scratch*/) const {}
  // Writes the row. Error messages describe the problem without its location, which the caller adds. Requires:
  // add_scratch() was called, and the sample has the field.
  virtual Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const = 0;
  // Like fill(), for a path with several rows.
  virtual Result<void> fill_rows(const memory::Record::Field& stored, FieldWork& work,
                                 std::span<memory::Row> rows) const {
    return fill(stored, work, rows.front());
  }
  // Adds the field to a record that Dataset::cache stores: pixels and labels are decoded and prepared; other fields are
  // checked and stored unchanged. Requires: as for fill(), and work.is_prepared is false.
  virtual Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                               format::PixelRecordBuilder& cached) const = 0;
  // Returns whether the stored row is delivered unchanged, so that it need not be copied.
  virtual bool gives_stored_row() const { return false; }
  // Returns whether the field is dense, and its rows are the stored numbers.
  virtual bool copies_numbers() const { return false; }
  // Describes the operations after the cache, one per line; empty if there is nothing to report.
  virtual std::vector<std::string> explain() const { return {}; }

 protected:
  // Returns the destination of a row with that shape: its position in the batch, or memory of its item. kData: the row
  // exceeds the limit.
  Result<ArrayView> destination(memory::Row& row, const Shape& shape, const FieldWork& work) const {
    if (row.item == nullptr) return row.view;
    FEEDLINE_TRY(const auto room, row.item->make_room(shape, spec().array.dtype, work.most_bytes));
    return ArrayView{room.data(), {spec().array.dtype, shape}};
  }

 private:
  std::vector<FieldSpec> specs_;
};

}  // namespace feedline::pipeline
