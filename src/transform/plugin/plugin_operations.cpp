// SPDX-License-Identifier: Apache-2.0
#include "transform/plugin/plugin_operations.h"

#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "base/fork_mutex.h"
#include "base/plugin_checks.h"

namespace feedline::transform {
namespace {

// Never destroyed, because loaders may outlive other statics.
struct Known {
  ForkMutex mutex;
  std::vector<std::unique_ptr<const feedline_operation_v1>> operations;  // guarded by mutex
};
Known& known() {
  static Known* const all = new Known;
  return *all;
}

}  // namespace

Result<void> check_plugin(const feedline_operation_v1& operation) {
  FEEDLINE_CHECK_OK(base::check_plugin_name("an operation", "name", operation.name));
  const std::string what = "the operation '" + std::string(operation.name) + "'";
  if (operation.run == nullptr) return config_error(what + " has no run()");
  constexpr std::uint32_t kFlags = FEEDLINE_OPERATION_IS_RANDOM | FEEDLINE_OPERATION_MOVES_PIXELS;
  if ((operation.flags & ~kFlags) != 0)
    return config_error(what + " has flags that version 1 does not define: " + std::to_string(operation.flags));
  FEEDLINE_CHECK_OK(base::check_plugin_list(what, "arguments", operation.arguments, operation.argument_count));
  std::set<std::string_view> names;
  for (const feedline_argument& argument : std::span(operation.arguments, operation.argument_count)) {
    FEEDLINE_CHECK_OK(base::check_plugin_name(what, "argument name", argument.name));
    const std::string_view name = argument.name;
    if (name == "operation" || name == "fields")
      return config_error(what + " has the argument '" + std::string(name) +
                          "', which is an argument of Dataset.apply(); choose another name");
    if (!names.insert(name).second) return config_error(what + " has two arguments '" + std::string(name) + "'");
  }
  if (plugin_operation(operation.name) != nullptr) return config_error(what + " exists already; choose another name");
  return {};
}

void add_plugin(const feedline_operation_v1& operation) {
  const std::lock_guard lock(known().mutex);
  known().operations.push_back(std::make_unique<const feedline_operation_v1>(operation));
}

const feedline_operation_v1* plugin_operation(std::string_view name) {
  const std::lock_guard lock(known().mutex);
  for (const auto& operation : known().operations)
    if (name == operation->name) return operation.get();
  return nullptr;
}

std::vector<std::string_view> plugin_operation_names() {
  std::vector<std::string_view> names;
  const std::lock_guard lock(known().mutex);
  for (const auto& operation : known().operations) names.emplace_back(operation->name);
  return names;
}

}  // namespace feedline::transform
