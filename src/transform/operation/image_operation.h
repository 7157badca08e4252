// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of image operations. Each operation is implemented in a source file in ops/ (see
// operation_definition.h).

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "feedline/operation.h"
#include "transform/operation/argument.h"
#include "transform/operation/properties.h"

namespace feedline::transform {

class Drawer;
class Inference;
class ImageOperation;

// Receives operations on values.
class ValueSteps {
 public:
  virtual void normalize(const op::Normalize& normalize) = 0;
  virtual void window(const op::Window& window) = 0;
  virtual void convert(DType dtype, bool scale) = 0;

 protected:
  ~ValueSteps() = default;
};

// The static description of an operation; there is one per name.
struct OperationType {
  std::string_view name;
  std::span<const Argument> arguments;
  // kConfig: a value is invalid.
  Result<Operation> (*make)(const Argument::Values& values);
  std::unique_ptr<const ImageOperation> (*make_default)();
  ArgumentValue (*default_value)(const Argument& argument);
};

// Immutable and thread-safe.
class ImageOperation {
 public:
  virtual ~ImageOperation() = default;

  virtual const OperationType& type() const = 0;
  virtual std::string_view name() const { return type().name; }  // of the method of Dataset, for messages
  virtual std::string describe() const = 0;                      // its arguments, formatted as in a Python call
  virtual Properties properties() const = 0;
  virtual std::span<const std::vector<Operation>> chains() const { return {}; }  // nested operations

  // Checks the arguments, and applies the operation's effect to `image`. kConfig: an argument or the image is invalid.
  virtual Result<void> infer(Inference& image) const = 0;
  // Draws parameters for one sample, and appends the result to the drawer's canvas. kData: the operation cannot be
  // applied to the image.
  virtual Result<void> draw(Drawer& drawer) const = 0;
  // Called only for operations of Stage::kValues.
  virtual void convert(ValueSteps& /*steps*/) const {}
};

// An operation whose arguments are an op:: struct.
template <typename ArgumentsIn>
class OperationOf : public ImageOperation {
 public:
  using Arguments = ArgumentsIn;
  explicit OperationOf(Arguments arguments) : args_(std::move(arguments)) {}
  const Arguments& arguments() const { return args_; }

 protected:
  const Arguments args_;
};

// Returns nullptr if the operation's arguments have another type. For tests only; other code uses properties().
template <typename Arguments>
const Arguments* arguments_of(const Operation& operation) {
  const auto* const found = dynamic_cast<const OperationOf<Arguments>*>(&*operation);
  return found == nullptr ? nullptr : &found->arguments();
}

}  // namespace feedline::transform
