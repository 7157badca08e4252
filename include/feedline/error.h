// SPDX-License-Identifier: Apache-2.0
#pragma once

// Errors and their locations. Every fallible function of Feedline returns Result<T>; the only exception that is thrown
// is std::bad_alloc, if a function that does not return a Result runs out of memory.

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>

namespace feedline {

enum class ErrorCode {
  kConfig,     // an invalid request by the caller, detected before any sample is read
  kData,       // a stored sample is damaged or not of its declared kind
  kStorage,    // the operating system could not open, read or list something
  kStalled,    // no progress within the timeout
  kCancelled,  // the loader was closed, or interrupted during a wait
  kInternal,   // an internal invariant was violated; please report it
};

// The location of an error. Members that do not apply are empty or nullopt.
struct Where {
  std::string dataset;                  // the argument of open()
  std::string shard;                    // path of the shard or file
  std::string key;                      // the sample's key: relative path, or WebDataset key
  std::optional<std::uint64_t> record;  // index of the sample in the dataset
  std::string label;                    // label of the table row, if labels and positions differ
  std::optional<std::uint64_t> offset;  // byte offset in the shard or file
  std::string stage;                    // "storage", "format", "decode", "transform", ...
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string what;
  Where where;
  int system_errno = 0;  // set for kStorage if the operating system reported one; ENOMEM: out of memory
  // The exception that a user's function raised, as an object of the function's language; see SampleFunction.
  std::shared_ptr<void> raised = nullptr;

  // Returns one line for users, with the message and all known parts of the location.
  std::string message() const;
};

template <typename T>
using Result = std::expected<T, Error>;

// Short forms: `return config_error("...")` from any function that returns Result.
std::unexpected<Error> config_error(std::string what);
std::unexpected<Error> data_error(std::string what, std::string stage);
std::unexpected<Error> storage_error(std::string what, int system_errno);
std::unexpected<Error> internal_error(std::string what);

}  // namespace feedline

// Propagates errors: FEEDLINE_TRY(auto x, f()) binds the value or returns the error, and FEEDLINE_CHECK_OK(f()) does
// the same for Result<void>.
#define FEEDLINE_CONCAT_INNER(a, b) a##b
#define FEEDLINE_CONCAT(a, b) FEEDLINE_CONCAT_INNER(a, b)
#define FEEDLINE_TRY_INNER(result, declaration, expression)       \
  auto result = (expression);                                     \
  if (!result) return std::unexpected(std::move(result).error()); \
  declaration = std::move(*result)
#define FEEDLINE_TRY(declaration, expression) \
  FEEDLINE_TRY_INNER(FEEDLINE_CONCAT(feedline_result_, __LINE__), declaration, expression)
#define FEEDLINE_CHECK_OK(expression)                                                           \
  do {                                                                                          \
    if (auto result = (expression); !result) return std::unexpected(std::move(result).error()); \
  } while (false)
