// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations by name, with descriptions of their arguments, for bindings, documentation and tools.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline {

// The value of any argument. Sizes, ranges, colours and borders are lists of numbers, and nested operations are lists
// of chains. std::monostate means that the argument is omitted, which only optional arguments accept.
using ArgumentValue = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<double>,
                                   std::vector<std::string>, std::vector<std::vector<Operation>>>;

struct ArgumentDescription {
  std::string_view name;
  std::string_view kind;  // "integer", "real", "flag", "word", "size", "range", ...
  bool is_optional = false;
  std::int64_t low = -std::numeric_limits<int>::max();  // for integers
  std::int64_t high = std::numeric_limits<int>::max();
  std::vector<std::string_view> words;  // for kind "word"
  ArgumentValue default_value;
};

struct OperationDescription {
  std::string_view name;
  std::vector<ArgumentDescription> arguments;
  bool is_random = false;
  bool moves_pixels = false;    // masks, boxes and points are transformed with the image
  bool runs_on_device = false;  // supported after decode(device="cuda") and cache("device")
};

// All operations that make_operation() can create, ordered by name.
std::vector<OperationDescription> operation_types();

// Omitted arguments have their default values. Fails with kConfig if the operation or an argument is unknown, or a
// value has the wrong kind.
Result<Operation> make_operation(std::string_view name,
                                 const std::vector<std::pair<std::string, ArgumentValue>>& arguments);

}  // namespace feedline
