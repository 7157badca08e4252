// SPDX-License-Identifier: Apache-2.0
#pragma once

// For source files in ops/. Each file defines an operation as a class that derives from OperationWith and contains the
// operation's name, arguments, checks, effect on sizes and targets, drawing and description. FEEDLINE_OPERATION follows
// the class.

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transform/operation/argument.h"
#include "transform/operation/image_operation.h"

namespace feedline::transform {

// The OperationType for a class that has kName, kArguments and an Arguments type.
template <typename Self>
inline constexpr OperationType kTypeOf{
    Self::kName, Self::kArguments,
    [](const Argument::Values& values) -> Result<Operation> {
      typename Self::Arguments arguments = Self::initial();
      FEEDLINE_CHECK_OK(read_arguments(Self::kArguments, values, &arguments));
      return Self::made(std::move(arguments));
    },
    []() -> std::unique_ptr<const ImageOperation> { return std::make_unique<Self>(Self::initial()); },
    [](const Argument& argument) {
      const typename Self::Arguments arguments = Self::initial();
      return argument.show(&arguments);
    }};

template <typename Self, typename Arguments>
class OperationWith : public OperationOf<Arguments> {
 public:
  using OperationOf<Arguments>::OperationOf;
  const OperationType& type() const final { return kTypeOf<Self>; }

  // Used by kTypeOf: the default arguments, and the operation that is created from arguments.
  static Arguments initial() { return {}; }
  static Result<Operation> made(Arguments arguments) { return Operation(std::move(arguments)); }

 protected:
  using OperationOf<Arguments>::args_;
};

}  // namespace feedline::transform

namespace feedline {

// Argument-dependent lookup finds implement().
template <OperationArguments Arguments>
Operation::Operation(Arguments arguments) : operation_(implement(std::move(arguments))) {}

}  // namespace feedline

// Used at the end of NAME.cpp in ops/, outside namespaces. Registers transform::CLASS as the implementation of
// op::CLASS.
#define FEEDLINE_OPERATION(NAME, CLASS) \
  FEEDLINE_UNLISTED_OPERATION(CLASS)    \
  FEEDLINE_LISTED(NAME, &kTypeOf<CLASS>)

// For operations that make_operation() does not support.
#define FEEDLINE_UNLISTED_OPERATION(CLASS) \
  FEEDLINE_IMPLEMENTED(CLASS, std::make_shared<const transform::CLASS>(std::move(arguments)))

// The last macro argument is an expression that creates an operation from `arguments`, which is an op::CLASS.
#define FEEDLINE_IMPLEMENTED(CLASS, ...)                                                              \
  namespace feedline {                                                                                \
  namespace op {                                                                                      \
  std::shared_ptr<const transform::ImageOperation> implement(CLASS arguments) { return __VA_ARGS__; } \
  }                                                                                                   \
  template Operation::Operation(op::CLASS);                                                           \
  }

// For a file whose operations are not registered.
#define FEEDLINE_NOTHING_LISTED(NAME)                         \
  namespace feedline::transform::types {                      \
  std::span<const OperationType* const> NAME() { return {}; } \
  }

// Registers the types that NAME.cpp defines.
#define FEEDLINE_LISTED(NAME, ...)                                  \
  namespace feedline::transform::types {                            \
  std::span<const OperationType* const> NAME() {                    \
    static constexpr const OperationType* kTypes[] = {__VA_ARGS__}; \
    return kTypes;                                                  \
  }                                                                 \
  }
