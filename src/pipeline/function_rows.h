// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "feedline/error.h"
#include "memory/row.h"
#include "pipeline/function_watch.h"
#include "pipeline/recipe.h"
#include "pipeline/stage_meter.h"

namespace feedline::pipeline {

// What one thread calls a recipe's function with: memory for the fields that it takes, and their way into rows.
class FunctionRows {
 public:
  // Requires: the recipe has a function, and outlives this. watch: of the thread, or nullptr.
  FunctionRows(const Recipe& recipe, std::shared_ptr<FunctionWatch> watch);

  // Stored rows that are not copied, one per field of the stored schema: to be set before places(). The function gets
  // those of the fields that it takes.
  std::vector<memory::OwnRow>& own_rows() { return own_; }
  std::span<const memory::OwnRow> own_rows() const { return own_; }
  bool takes(std::size_t field) const;  // of the stored schema
  // Where the stored fields of a sample go, one of which for each: its row, or memory for the function.
  std::span<memory::Row> places(std::span<memory::Row> rows);
  // Calls the function with what was written there, and writes the rows of what it gives. most_bytes: of a row whose
  // size shows only now.
  Result<void> fill(const base::SampleKey& key, std::span<memory::Row> rows, std::uint64_t most_bytes,
                    StageMeter& meter);

 private:
  Result<FunctionResult> call(const base::SampleKey& key, StageMeter& meter);
  FunctionCall call_of(const base::SampleKey& key);
  Result<void> write(std::span<const FunctionValue> values, std::span<memory::Row> rows,
                     std::uint64_t most_bytes) const;

  const Recipe& recipe_;
  const std::shared_ptr<FunctionWatch> watch_;
  std::vector<std::shared_ptr<memory::ListItem>> items_;   // one for each field that it takes
  std::vector<std::shared_ptr<memory::ListItem>> spares_;  // as what it gave may be a part of what it took, still held
  std::vector<memory::Row> places_;
  std::vector<memory::OwnRow> own_;
};

}  // namespace feedline::pipeline
