// SPDX-License-Identifier: Apache-2.0
#include "data/operations.h"

#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "feedline/operation_types.h"
#include "interop/enum_names.h"
#include "interop/errors.h"
#include "interop/text_caster.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

using Chains = std::vector<std::vector<Operation>>;

Chains chains_of(const std::vector<const Dataset*>& datasets) {
  Chains chains;
  for (const Dataset* dataset : datasets) chains.push_back(dataset->operations());
  return chains;
}

// `subject`: the operation and the argument, for error messages.
ArgumentValue value_of(nb::handle object, const std::string& subject) {
  if (object.is_none()) return std::monostate();
  if (nb::isinstance<nb::bool_>(object)) return nb::cast<bool>(object);
  if (nb::isinstance<nb::str>(object)) return nb::cast<std::string>(object);
  if (std::int64_t whole = 0; nb::isinstance<nb::int_>(object) && nb::try_cast(object, whole)) return whole;
  if (nb::isinstance<nb::float_>(object)) return nb::cast<double>(object);
  if (nb::isinstance<Dataset>(object)) return chains_of({nb::cast<const Dataset*>(object)});
  if (std::vector<double> numbers; nb::try_cast(object, numbers)) return numbers;
  if (std::vector<std::string> names; nb::try_cast(object, names)) return names;
  if (std::vector<const Dataset*> datasets; nb::try_cast(object, datasets)) return chains_of(datasets);
  raise_config(subject + ": an argument cannot be " + repr_of(object));
}

// None for chains, which have no default.
nb::object object_of(const ArgumentValue& value) {
  return std::visit(
      []<typename T>(const T& known) -> nb::object {
        if constexpr (std::is_same_v<T, std::monostate> || std::is_same_v<T, Chains>)
          return nb::none();
        else
          return nb::cast(known);
      },
      value);
}

// Checks at once, so that a wrong argument is reported at the call.
Dataset with_operation(const Dataset& self, const std::string& name, const std::vector<std::string>& fields,
                       const nb::dict& arguments) {
  std::vector<std::pair<std::string, ArgumentValue>> values;
  for (const auto& [key, object] : arguments) {
    std::string argument = nb::cast<std::string>(key);
    ArgumentValue value = value_of(object, name + ": " + argument);
    values.emplace_back(std::move(argument), std::move(value));
  }
  Operation operation = unwrap(make_operation(name, values));
  operation.fields = fields;
  Dataset longer = self.with(std::move(operation));
  unwrap(longer.check());
  return longer;
}

nb::dict described(const ArgumentDescription& argument) {
  nb::dict facts;
  facts["name"] = argument.name;
  facts["kind"] = argument.kind;
  facts["is_optional"] = argument.is_optional;
  facts["low"] = argument.low;
  facts["high"] = argument.high;
  facts["words"] = argument.words;
  facts["default"] = object_of(argument.default_value);
  return facts;
}

nb::list list_operation_types() {
  nb::list all;
  for (const OperationDescription& operation : operation_types()) {
    nb::list arguments;
    for (const ArgumentDescription& argument : operation.arguments) arguments.append(described(argument));
    nb::dict facts;
    facts["name"] = operation.name;
    facts["arguments"] = arguments;
    facts["is_random"] = operation.is_random;
    facts["moves_pixels"] = operation.moves_pixels;
    facts["runs_on_device"] = operation.runs_on_device;
    all.append(facts);
  }
  return all;
}

nb::list role_rows(const Dataset& self) {
  nb::list rows;
  for (const FieldRole& role : self.roles())
    rows.append(nb::make_tuple(role.name, role.kind, std::string(name_of(role.box_format)), role.clamps));
  return rows;
}

}  // namespace

void bind_operations(nb::module_& module, nb::class_<Dataset>& cls) {
  cls.def("roles", &role_rows, nb::sig("def roles(self) -> list[tuple[str, str, str, bool]]"))
      .def("with_operation", &with_operation, "name"_a, "fields"_a, "arguments"_a,
           nb::sig("def with_operation(self, name: str, fields: collections.abc.Sequence[str], "
                   "arguments: dict[str, typing.Any]) -> Dataset"));
  module.def("operation_types", &list_operation_types, nb::sig("def operation_types() -> list[dict[str, typing.Any]]"));
}

}  // namespace feedline::python
