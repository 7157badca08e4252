// SPDX-License-Identifier: Apache-2.0
#pragma once

// The function that a dataset applies after its operations. The function's arguments and results are determined before
// the first row is loaded.
//
//   stored fields ─► their paths ─┬─► rows of a batch                      fields that it does not use
//                                 └─► memory of the thread ─► function ─► rows of a batch

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "feedline/sample_function.h"
#include "memory/row.h"

namespace feedline::pipeline {

struct Collation;
struct Recipe;
enum class RowsFor : std::uint8_t;
struct ViewPoint;
class Source;

// A field of the function's result, without its BatchForm.
struct GivenField {
  std::string name;
  Content content = Content::kArray;
  ArraySpec array;
};

// The position of a function in a chain. Copies of a dataset share one MapPoint, including the result fields once they
// are determined.
class MapPoint {
 public:
  // Adds the function after this many operations. before: the function that the new one replaces, or nullptr. kConfig:
  // see Dataset::map.
  static Result<std::shared_ptr<const MapPoint>> make(std::shared_ptr<const SampleFunction> function,
                                                      const Source& source, std::size_t operations,
                                                      const MapPoint* before, const ViewPoint* views = nullptr);

  const std::shared_ptr<const SampleFunction>& function() const { return function_; }
  bool takes(const std::string& field) const;
  // kConfig: the operation at `position` names a field that is an argument of an earlier function. images, followers:
  // the names of the source's images, and of the fields that follow their geometry.
  Result<void> check(const Operation& operation, std::size_t position, const std::vector<std::string>& images,
                     const std::vector<std::string>& followers) const;

  // Returns the fields of the function's result for the first good sample. native: the recipe for the function's
  // arguments.
  Result<std::vector<GivenField>> given(const Recipe& native, std::optional<DType> dtype, Layout layout) const;

 private:
  struct Found {
    std::optional<DType> dtype;
    Layout layout;
    std::vector<GivenField> fields;
  };
  explicit MapPoint(std::shared_ptr<const SampleFunction> function) : function_(std::move(function)) {}

  const std::shared_ptr<const SampleFunction> function_;
  std::vector<std::pair<std::string, std::size_t>> closed_;  // its arguments, and the number of operations before
  mutable std::mutex mutex_;                                 // guards found_; never held while the function runs
  mutable std::vector<Found> found_;
};

// Returns how a function uses its arguments.
inline memory::RowUse use_of(const SampleFunction& function) {
  return function.only_reads() ? memory::RowUse::kView : memory::RowUse::kCall;
}

// How a recipe's fields relate to the function's arguments and results.
struct Mapping {
  static constexpr std::size_t kTaken = static_cast<std::size_t>(-1);

  std::shared_ptr<const SampleFunction> function;
  std::vector<std::size_t> takes;  // indices in stored_schema, in argument order
  std::vector<std::size_t>
      schema_indices;              // index in the schema for each field of stored_schema; kTaken: a function argument
  std::vector<std::size_t> gives;  // indices in the schema, in the order of the first sample's result
};

// Replaces the function's arguments with its results in the recipe. collations: if several name a field, the last one
// applies.
Result<void> take_function(Recipe& recipe, const MapPoint& map, std::optional<DType> dtype, Layout layout,
                           const std::vector<Collation>& collations, RowsFor rows_for);
// Returns the recipe with a copy of the function for this loader, if the function needs one.
Result<std::shared_ptr<const Recipe>> of_loader(std::shared_ptr<const Recipe> recipe);

}  // namespace feedline::pipeline
