// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of all operations on images. Each is a source file in ops/: see operation_definition.h.

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

// What operations on values are added to.
class ValueSteps {
 public:
  virtual void normalize(const op::Normalize& normalize) = 0;
  virtual void convert(DType dtype, bool scale) = 0;

 protected:
  ~ValueSteps() = default;
};

// One for each name.
struct OperationType {
  std::string_view name;
  std::span<const Argument> arguments;
  // kConfig: a value that cannot be read.
  Result<Operation> (*make)(const Argument::Values& values);
  std::unique_ptr<const ImageOperation> (*make_default)();
  ArgumentValue (*default_value)(const Argument& argument);
};

// Immutable and thread-safe.
class ImageOperation {
 public:
  virtual ~ImageOperation() = default;

  virtual const OperationType& type() const = 0;
  virtual std::string describe() const = 0;  // its arguments, as a call in Python has them
  virtual Properties properties() const = 0;
  virtual std::span<const std::vector<Operation>> chains() const { return {}; }  // of operations in this one

  // Checks the arguments, then applies the operation to `image`. kConfig says what is wrong.
  virtual Result<void> infer(Inference& image) const = 0;
  // Draws for one sample and appends the result to the drawer's canvas. kData: the image cannot take it.
  virtual Result<void> draw(Drawer& drawer) const = 0;
  // Only of Stage::kValues.
  virtual void convert(ValueSteps& /*steps*/) const {}
};

// An operation made of an op:: struct.
template <typename ArgumentsIn>
class OperationOf : public ImageOperation {
 public:
  using Arguments = ArgumentsIn;
  explicit OperationOf(Arguments arguments) : args_(std::move(arguments)) {}
  const Arguments& arguments() const { return args_; }

 protected:
  const Arguments args_;
};

// nullptr: an operation of other arguments. For tests: code that ships asks properties().
template <typename Arguments>
const Arguments* arguments_of(const Operation& operation) {
  const auto* const found = dynamic_cast<const OperationOf<Arguments>*>(&*operation);
  return found == nullptr ? nullptr : &found->arguments();
}

}  // namespace feedline::transform
