// SPDX-License-Identifier: Apache-2.0
#pragma once

// The function that a dataset has behind its operations: what it takes and gives, found out before the first row.
//
//   stored fields ─► their paths ─┬─► rows of a batch                      fields that it leaves alone
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

// One field of what a function gives, without its row's form.
struct GivenField {
  std::string name;
  Content content = Content::kArray;
  ArraySpec array;
};

// Where in a chain a function stands. Copies of a dataset share it, and what it was found to give.
class MapPoint {
 public:
  // Behind `operations` operations. before: the function that it takes the place of, or nullptr. kConfig: see
  // Dataset::map.
  static Result<std::shared_ptr<const MapPoint>> make(std::shared_ptr<const SampleFunction> function,
                                                      const Source& source, std::size_t operations,
                                                      const MapPoint* before, const ViewPoint* views = nullptr);

  const std::shared_ptr<const SampleFunction>& function() const { return function_; }
  bool takes(const std::string& field) const;
  // kConfig: the operation, number `position` of the chain, is for a field that the function took before it.
  // images, and what moves as they do: names of the source's.
  Result<void> check(const Operation& operation, std::size_t position, const std::vector<std::string>& images,
                     const std::vector<std::string>& followers) const;

  // What the function makes of the first sound sample. native: the recipe of what it takes.
  Result<std::vector<GivenField>> given(const Recipe& native, std::optional<DType> dtype, Layout layout) const;

 private:
  struct Found {
    std::optional<DType> dtype;
    Layout layout;
    std::vector<GivenField> fields;
  };
  explicit MapPoint(std::shared_ptr<const SampleFunction> function) : function_(std::move(function)) {}

  const std::shared_ptr<const SampleFunction> function_;
  std::vector<std::pair<std::string, std::size_t>> closed_;  // fields that it takes, and behind how many operations
  mutable std::mutex mutex_;                                 // of what follows; never held while the function runs
  mutable std::vector<Found> found_;
};

// How a function uses its rows.
inline memory::RowUse use_of(const SampleFunction& function) {
  return function.only_reads() ? memory::RowUse::kView : memory::RowUse::kCall;
}

// Of a recipe: which fields go where.
struct Mapping {
  static constexpr std::size_t kTaken = static_cast<std::size_t>(-1);

  std::shared_ptr<const SampleFunction> function;
  std::vector<std::size_t> takes;   // of stored_schema, in the order in which it takes them
  std::vector<std::size_t> places;  // of each field of stored_schema, in the schema; kTaken: it goes to the function
  std::vector<std::size_t> gives;   // fields of the schema, in the order of the first sample's
};

// Lets the recipe of what is stored give what the function makes of it. collations: the last one that names a field
// counts.
Result<void> take_function(Recipe& recipe, const MapPoint& map, std::optional<DType> dtype, Layout layout,
                           const std::vector<Collation>& collations, RowsFor rows_for);
// The recipe with a function of its loader's own, where that has one.
Result<std::shared_ptr<const Recipe>> of_loader(std::shared_ptr<const Recipe> recipe);

}  // namespace feedline::pipeline
