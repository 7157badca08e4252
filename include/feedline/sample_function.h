// SPDX-License-Identifier: Apache-2.0
#pragma once

// A user's function that Dataset::map() calls on fields of samples after the operations.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline {

// One field of one sample.
struct FunctionValue {
  std::string name;
  Content content = Content::kArray;
  ArrayView array = {};  // C-contiguous; bytes, text and JSON are uint8 of the shape (bytes,)
  bool absent = false;   // the sample lacks the field, and there is no array
  // Owns the array. The function may modify the array unless SampleFunction::only_reads() returns true.
  std::shared_ptr<void> memory = nullptr;
};

struct FunctionCall {
  std::vector<FunctionValue> values;  // the fields that the function consumes, in its order
  // The seed of the function's random numbers, so that a sample's draws do not depend on earlier calls.
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t draw = 0;  // see GivenSample
};

struct FunctionResult {
  std::vector<FunctionValue> values;
  std::uint64_t waited_ns = 0;  // time of the call before the function could start, such as waiting for a lock
};

// Immutable and thread-safe: engine threads call it concurrently, without holding locks. The results depend only on the
// arguments of call(). Does not throw.
class SampleFunction {
 public:
  virtual ~SampleFunction() = default;

  // The fields that the function consumes, or an empty list for all fields. If the function consumes all fields, its
  // results are all fields of the new sample; otherwise, the results replace the consumed fields.
  virtual const std::vector<std::string>& takes() const = 0;
  // Whether the function does not modify its input, so that rows of arrays can be passed without a copy.
  virtual bool only_reads() const { return false; }
  // Whether the results are arrays that do not change after the call, so that they can be used without a copy.
  virtual bool gives_away() const { return false; }
  // Fails with kData if the sample is invalid (on_error determines how this error is handled), and with kConfig if the
  // function does not support the samples. kCancelled ends the loader: next() fails with kCancelled.
  virtual Result<FunctionResult> call(FunctionCall call) const = 0;
  virtual std::vector<std::string> explain() const = 0;  // describes the function and the thread or process that runs
                                                         // it, in lines

  // Returns a separate object for the loader if the function needs per-loader state, or nullptr to use this object. The
  // loader calls begin() on the consumer's thread before the first call, and end() when the loader ends. After end(),
  // pending calls must return, unless the user's function is running.
  virtual Result<std::shared_ptr<const SampleFunction>> for_loader() const { return nullptr; }
  virtual Result<void> begin() const { return {}; }
  virtual void end() const {}
};

}  // namespace feedline
