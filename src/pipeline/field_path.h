// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/random.h"
#include "feedline/array.h"
#include "feedline/error.h"
#include "format/pixels/pixel_record.h"
#include "memory/record.h"
#include "pipeline/stage_meter.h"

namespace feedline::pipeline {

struct FieldScratch;

// What the fields of one sample are made with.
struct FieldWork {
  const base::SampleKey& key;  // for what is drawn
  FieldScratch& scratch;       // of the thread
  StageMeter& meter;
  bool is_prepared = false;  // what is stored comes as keep() made it
};

// The path of one field of a sample, from its stored bytes to its row of a batch. Immutable and thread-safe; what a
// thread needs beside lies in its FieldScratch.
class FieldPath {
 public:
  explicit FieldPath(FieldSpec spec) : spec_(std::move(spec)) {}
  virtual ~FieldPath() = default;
  FieldPath(const FieldPath&) = delete;
  FieldPath& operator=(const FieldPath&) = delete;

  const FieldSpec& spec() const { return spec_; }  // its entry of the schema
  // Makes what fill() and keep() need in a thread's scratch, unless it is there.
  virtual void add_scratch(FieldScratch& /*scratch*/) const {}
  // Writes the row, which has the spec's shape. An error says what is wrong, not where: the caller knows. Requires:
  // add_scratch() came before.
  virtual Result<void> fill(const memory::Record::Field& stored, FieldWork& work, const ArrayView& row) const = 0;
  // Adds the field to a record that Dataset::cache keeps. Requires: as fill(), and what is stored is not prepared.
  virtual Result<void> keep(const memory::Record::Field& stored, FieldWork& work,
                            format::PixelRecordBuilder& kept) const = 0;

 private:
  const FieldSpec spec_;
};

}  // namespace feedline::pipeline
