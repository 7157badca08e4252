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
#include "pipeline/stage_meter.h"

namespace feedline::transform {
struct LeftElements;
}

namespace feedline::pipeline {

struct FieldScratch;

// What the fields of one sample are made with.
struct FieldWork {
  const base::SampleKey& key;  // for what is drawn
  FieldScratch& scratch;       // of the thread
  StageMeter& meter;
  bool is_prepared = false;                              // what is stored comes as keep() made it
  std::uint64_t most_bytes = memory::kLeastSampleBytes;  // of a row whose size shows only now: memory/sample_limit.h
};

// The path of one field of a sample, from its stored bytes to its row of a batch, or to several rows. Immutable and
// thread-safe; what a thread needs beside lies in its FieldScratch.
class FieldPath {
 public:
  explicit FieldPath(FieldSpec spec) { specs_.push_back(std::move(spec)); }
  explicit FieldPath(std::vector<FieldSpec> specs) : specs_(std::move(specs)) {}  // Requires: at least one
  virtual ~FieldPath() = default;
  FieldPath(const FieldPath&) = delete;
  FieldPath& operator=(const FieldPath&) = delete;

  const std::vector<FieldSpec>& specs() const { return specs_; }  // its entries of the schema, one for each row
  const FieldSpec& spec() const { return specs_.front(); }        // the only one of most
  // Of its entry number `entry`: what is left to be made of the bytes of each of its images; nullptr: nothing is.
  virtual std::shared_ptr<const transform::LeftElements> left(std::size_t /*entry*/) const { return nullptr; }
  // Makes what fill() and keep() need in a thread's scratch, unless it is there.
  virtual void add_scratch(FieldScratch& /*scratch*/) const {}
  // Writes the row. An error says what is wrong, not where: the caller knows. Requires: add_scratch() came before, and
  // the field is not absent.
  virtual Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const = 0;
  // The same of a path of several rows.
  virtual Result<void> fill_rows(const memory::Record::Field& stored, FieldWork& work,
                                 std::span<memory::Row> rows) const {
    return fill(stored, work, rows.front());
  }
  // Adds the field to a record that Dataset::cache keeps: pixels and labels decoded and prepared, all else as it is
  // stored, after a look whether it is sound. Requires: as fill(), and what is stored is not prepared.
  virtual Result<void> keep(const memory::Record::Field& stored, FieldWork& work,
                            format::PixelRecordBuilder& kept) const = 0;
  // Is the stored row delivered unchanged, so that it need not be copied?
  virtual bool gives_stored_row() const { return false; }
  // What is done to it, and was not for a cache, in lines; none: nothing that needs a word.
  virtual std::vector<std::string> explain() const { return {}; }

 protected:
  // Where a row of that shape goes: its place in the batch, or room in its item. kData: it is over the limit.
  Result<ArrayView> place(memory::Row& row, const Shape& shape, const FieldWork& work) const {
    if (row.item == nullptr) return row.view;
    FEEDLINE_TRY(const auto room, row.item->make_room(shape, spec().array.dtype, work.most_bytes));
    return ArrayView{room.data(), {spec().array.dtype, shape}};
  }

 private:
  std::vector<FieldSpec> specs_;
};

}  // namespace feedline::pipeline
