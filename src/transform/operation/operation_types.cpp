// SPDX-License-Identifier: Apache-2.0
#include "feedline/operation_types.h"

#include <algorithm>

#include "transform/operation/image_operation.h"
#include "transform/operation/operation_list.h"

namespace feedline {
namespace {

ArgumentDescription described(const transform::OperationType& type, const transform::Argument& argument) {
  return {argument.name,
          argument.kind,
          argument.is_optional,
          argument.limits.low,
          argument.limits.high,
          argument.words == nullptr ? std::vector<std::string_view>() : argument.words(),
          type.default_value(argument)};
}

}  // namespace

std::vector<OperationDescription> operation_types() {
  std::vector<OperationDescription> all;
  for (const transform::OperationType* const type : transform::list_operations()) {
    const transform::Properties properties = type->make_default()->properties();
    OperationDescription& one = all.emplace_back();
    one.name = type->name;
    for (const transform::Argument& argument : type->arguments) one.arguments.push_back(described(*type, argument));
    one.is_random = properties.is_random;
    one.moves_pixels = properties.moves_pixels;
    one.runs_on_device = properties.runs_on_device;
  }
  std::ranges::sort(all, {}, &OperationDescription::name);
  return all;
}

Result<Operation> make_operation(std::string_view name,
                                 const std::vector<std::pair<std::string, ArgumentValue>>& arguments) {
  for (const transform::OperationType* const type : transform::list_operations()) {
    if (type->name != name) continue;
    auto made = type->make(arguments);
    if (!made) made.error().what = std::string(name) + ": " + made.error().what;
    return made;
  }
  return config_error("there is no operation \"" + std::string(name) + "\"");
}

}  // namespace feedline
