// SPDX-License-Identifier: Apache-2.0
#pragma once

// For source files in ops/, which define an operation as a class that derives from OperationWith and has its name,
// arguments, checks, effect on sizes and targets, drawing and description, followed by FEEDLINE_OPERATION.

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

// The OperationType of a class that has kName, kArguments and an Arguments type.
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

  // For kTypeOf: the default arguments, and the operation made from arguments.
  static Arguments initial() { return {}; }
  static Result<Operation> made(Arguments arguments) { return Operation(std::move(arguments)); }

 protected:
  using OperationOf<Arguments>::args_;
};

}  // namespace feedline::transform

namespace feedline {

// implement() is found by argument-dependent lookup.
template <OperationArguments Arguments>
Operation::Operation(Arguments arguments) : operation_(implement(std::move(arguments))) {}

}  // namespace feedline

// Used at the end of NAME.cpp in ops/, outside of namespaces. Makes an op::CLASS a listed transform::CLASS.
#define FEEDLINE_OPERATION(NAME, CLASS) \
  FEEDLINE_UNLISTED_OPERATION(CLASS)    \
  FEEDLINE_LISTED(NAME, &kTypeOf<CLASS>)

// For operations that make_operation() does not support.
#define FEEDLINE_UNLISTED_OPERATION(CLASS) \
  FEEDLINE_IMPLEMENTED(CLASS, std::make_shared<const transform::CLASS>(std::move(arguments)))

// The last argument is an expression that makes an operation from `arguments`, an op::CLASS.
#define FEEDLINE_IMPLEMENTED(CLASS, ...)                                                              \
  namespace feedline {                                                                                \
  namespace op {                                                                                      \
  std::shared_ptr<const transform::ImageOperation> implement(CLASS arguments) { return __VA_ARGS__; } \
  }                                                                                                   \
  template Operation::Operation(op::CLASS);                                                           \
  }

// For a file whose operations are not listed.
#define FEEDLINE_NOTHING_LISTED(NAME)                         \
  namespace feedline::transform::types {                      \
  std::span<const OperationType* const> NAME() { return {}; } \
  }

// The types that NAME.cpp defines.
#define FEEDLINE_LISTED(NAME, ...)                                  \
  namespace feedline::transform::types {                            \
  std::span<const OperationType* const> NAME() {                    \
    static constexpr const OperationType* kTypes[] = {__VA_ARGS__}; \
    return kTypes;                                                  \
  }                                                                 \
  }
