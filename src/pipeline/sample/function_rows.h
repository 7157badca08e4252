// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "feedline/error.h"
#include "memory/row.h"
#include "pipeline/fields/stage_meter.h"
#include "pipeline/sample/function_watch.h"
#include "pipeline/sample/recipe.h"

namespace feedline::pipeline {

// Calls a recipe's function on one thread: provides memory for the arguments and converts the results to rows.
class FunctionRows {
 public:
  // Requires: the recipe has a function and outlives this object. watch: the thread's watch, or nullptr.
  FunctionRows(const Recipe& recipe, std::shared_ptr<FunctionWatch> watch);

  // The stored rows that are not copied, one per field of the stored schema. Set them before calling stored_rows(). The
  // function receives the rows of the fields that are its arguments.
  std::vector<memory::OwnRow>& own_rows() { return own_; }
  std::span<const memory::OwnRow> own_rows() const { return own_; }
  bool takes(std::size_t field) const;  // field: in the stored schema
  // Returns the destination of each stored field: its row, or memory for the function's argument.
  std::span<memory::Row> stored_rows(std::span<memory::Row> rows);
  // Calls the function with the fields and writes its results to `rows`. most_bytes: the limit for rows whose size is
  // known only after the call.
  Result<void> fill(const base::SampleKey& key, std::span<memory::Row> rows, std::uint64_t most_bytes,
                    StageMeter& meter);

 private:
  Result<FunctionResult> call(const base::SampleKey& key, StageMeter& meter);
  FunctionCall call_of(const base::SampleKey& key);
  Result<void> write(std::span<const FunctionValue> values, std::span<memory::Row> rows,
                     std::uint64_t most_bytes) const;

  const Recipe& recipe_;
  const std::shared_ptr<FunctionWatch> watch_;
  std::vector<std::shared_ptr<memory::ListItem>> items_;   // one per argument
  std::vector<std::shared_ptr<memory::ListItem>> spares_;  // results may refer to an argument that is still referenced
  std::vector<memory::Row> stored_rows_;
  std::vector<memory::OwnRow> own_;
};

}  // namespace feedline::pipeline
