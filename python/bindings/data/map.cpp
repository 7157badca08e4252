// SPDX-License-Identifier: Apache-2.0
// Calls Python functions of the user: the engine's threads call feedline/data/map/mapping.py while holding the GIL.
#include "feedline/sample_function.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "feedline/dataset.h"
#include "interop/arrays.h"
#include "interop/enum_names.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

std::unexpected<Error> cancelled(std::string what, std::shared_ptr<void> raised = nullptr) {
  return std::unexpected(Error{ErrorCode::kCancelled, std::move(what), {}, 0, std::move(raised)});
}

// Converts a value to Python.
nb::object python_value(const FunctionValue& value, bool only_reads) {
  if (value.absent) return nb::none();
  const ArrayView& array = value.array;
  if (value.content != Content::kArray)
    return stored_row({array.data, array.spec.bytes()}, value.content, value.name, {});
  if (array.spec.shape.dims() == 0 && array.spec.dtype == DType::kInt64) return nb::int_(*array.as<std::int64_t>());
  nb::object made = to_array(array, value.memory, Framework::kNumpy);
  if (only_reads) made.attr("setflags")("write"_a = false);
  return made;
}

Shape shape_of(nb::handle extents) {
  Shape shape;
  const auto all = nb::cast<std::vector<std::int64_t>>(extents);
  for (std::size_t i = all.size(); i-- > 0;) shape = shape.with_front(all[i]);
  return shape;
}

// (name, kind, dtype, shape, buffer); the buffer is retained. kind "none": there is no value.
FunctionValue value_of(nb::handle made) {
  FunctionValue value{.name = nb::cast<std::string>(made[0])};
  const auto kind = nb::cast<std::string>(made[1]);
  value.absent = kind == "none";
  if (value.absent) return value;
  value.content = content_of(kind);
  nb::object buffer = made[4];
  const HeldBytes held(buffer);
  value.array = {const_cast<std::byte*>(held.bytes().data()),  // NOLINT: it is read alone
                 {dtype_of(nb::cast<std::string>(made[2])), shape_of(made[3])}};
  value.memory = held_by_anyone(std::move(buffer));
  return value;
}

// The result of feedline/data/map/mapping.py: a list of values, or (code, message, exception or None).
Result<FunctionResult> result_of(nb::handle made) {
  FunctionResult result;
  if (nb::isinstance<nb::tuple>(made)) {
    const auto code = nb::cast<std::string>(made[0]);
    Error error{code == "config" ? ErrorCode::kConfig : ErrorCode::kData, nb::cast<std::string>(made[1]), {}, 0};
    error.where.stage = "map";
    if (nb::object raised = made[2]; !raised.is_none()) error.raised = held_by_anyone(std::move(raised));
    return std::unexpected(std::move(error));
  }
  for (nb::handle value : made) result.values.push_back(value_of(value));
  return result;
}

class PythonFunction final : public SampleFunction {
 public:
  // target: a feedline.data.map.mapping.Chain, or an object with the same methods.
  explicit PythonFunction(nb::object target)
      : takes_(nb::cast<std::vector<std::string>>(target.attr("takes"))),
        explained_(nb::cast<std::vector<std::string>>(target.attr("explain")())),
        only_reads_(nb::cast<bool>(target.attr("only_reads"))),
        gives_away_(nb::cast<bool>(target.attr("gives_away"))),
        call_(held_by_anyone(target.attr("call"))),
        target_(held_by_anyone(std::move(target))) {}

  const std::vector<std::string>& takes() const override { return takes_; }
  Result<FunctionResult> call(FunctionCall call) const override;
  std::vector<std::string> explain() const override { return explained_; }
  bool only_reads() const override { return only_reads_; }
  bool gives_away() const override { return gives_away_; }
  Result<std::shared_ptr<const SampleFunction>> for_loader() const override;
  Result<void> begin() const override;
  void end() const override;

 private:
  nb::object target() const { return nb::borrow(object_of(target_)); }
  Result<FunctionResult> entered(const FunctionCall& call) const;

  const std::vector<std::string> takes_, explained_;
  const bool only_reads_, gives_away_;
  const std::shared_ptr<void> call_, target_;
};

// An exception that ends the program, such as KeyboardInterrupt; any other is an internal error.
std::unexpected<Error> failed(nb::python_error& error) {
  const std::string what = error.what();
  if (error.matches(PyExc_Exception)) return internal_error("map: " + what);
  return cancelled("map: the function raised an exception that ends the program",
                   held_by_anyone(nb::borrow(error.value())));
}

Result<FunctionResult> PythonFunction::entered(const FunctionCall& call) const {
  nb::list values;
  nb::list names;
  for (const FunctionValue& value : call.values) {
    names.append(value.name);
    values.append(python_value(value, only_reads_));
  }
  const nb::tuple arguments = nb::make_tuple(names, values, call.seed, call.epoch, call.draw);
  values = nb::list();  // only the function refers to these objects
  const auto made = nb::steal(EnteringPython::run(object_of(call_).ptr(), arguments.ptr()));
  if (!made.is_valid()) throw nb::python_error();
  return result_of(made);
}

Result<FunctionResult> PythonFunction::call(FunctionCall call) const {
  const std::uint64_t asked = now_ns();
  const EnteringPython entering;
  if (!entering) return cancelled("the interpreter ends");
  const std::uint64_t waited = now_ns() - asked;
  release_left();
  try {
    auto result = entered(call);
    call.values.clear();
    if (result) result->waited_ns = waited;
    return result;
  } catch (nb::python_error& error) {
    return failed(error);
  }
}

Result<std::shared_ptr<const SampleFunction>> PythonFunction::for_loader() const {
  const TakingGil gil;
  if (!gil) return cancelled("the interpreter ends");
  try {
    nb::object own = target().attr("for_loader")();
    return own.is_none() ? nullptr : std::make_shared<PythonFunction>(std::move(own));
  } catch (nb::python_error& error) {
    return failed(error);
  }
}

Result<void> PythonFunction::begin() const {
  const TakingGil gil;
  if (!gil) return cancelled("the interpreter ends");
  try {
    target().attr("begin")();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) return failed(error);
    return config_error("map: " + std::string(nb::str(error.value()).c_str()));  // what() includes the traceback
  }
  return {};
}

void PythonFunction::end() const {
  const TakingGil gil;
  if (!gil) return;
  release_left();
  try {
    target().attr("end")();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("feedline: an error while map ended");
  }
}

}  // namespace

void bind_map(nb::module_& module) {
  module.attr("MAX_DIMENSIONS") = Shape::kMaxDims;  // maximum of an array, including the batch dimension
  module.def(
      "map",
      [](const Dataset& dataset, nb::object chain) {
        auto function = std::make_shared<PythonFunction>(std::move(chain));
        return unwrap(without_gil([&] { return dataset.map(std::move(function)); }));
      },
      "dataset"_a, "chain"_a);
}

}  // namespace feedline::python
