// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a source file in ops/ needs to define an operation: a class that derives from OperationWith, with its name,
// arguments, checks, effect on sizes and targets, drawing and description, then FEEDLINE_OPERATION. For these only.

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

// The entries of OperationType for a class that has kName and kArguments and is made of Arguments.
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

  // For kTypeOf: the defaults, and an operation of arguments.
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

// At the end of NAME.cpp in ops/, outside of namespaces: op::CLASS makes a transform::CLASS, which is listed.
#define FEEDLINE_OPERATION(NAME, CLASS) \
  FEEDLINE_UNLISTED_OPERATION(CLASS)    \
  FEEDLINE_LISTED(NAME, &kTypeOf<CLASS>)

// An operation that make_operation() does not make.
#define FEEDLINE_UNLISTED_OPERATION(CLASS) \
  FEEDLINE_IMPLEMENTED(CLASS, std::make_shared<const transform::CLASS>(std::move(arguments)))

// The last argument makes an operation of `arguments`, which are an op::CLASS.
#define FEEDLINE_IMPLEMENTED(CLASS, ...)                                                              \
  namespace feedline {                                                                                \
  namespace op {                                                                                      \
  std::shared_ptr<const transform::ImageOperation> implement(CLASS arguments) { return __VA_ARGS__; } \
  }                                                                                                   \
  template Operation::Operation(op::CLASS);                                                           \
  }

// A file whose operations are not listed.
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
