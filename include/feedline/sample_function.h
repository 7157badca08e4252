// SPDX-License-Identifier: Apache-2.0
#pragma once

// A user's function on fields of samples, which a dataset runs after its operations: Dataset::map().

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
  // Owns the array. The function has exclusive access unless it is read-only.
  std::shared_ptr<void> memory = nullptr;
};

struct FunctionCall {
  std::vector<FunctionValue> values;  // the fields that the function consumes, in its order
  // The key for its random numbers, so that a sample's draws do not depend on earlier calls.
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t draw = 0;  // see GivenSample
};

struct FunctionResult {
  std::vector<FunctionValue> values;
  std::uint64_t waited_ns = 0;  // time of the call before the function could start, such as waiting for a lock
};

// Immutable and thread-safe: engine threads call it concurrently, without holding locks. Its results depend only on the
// call. Does not throw.
class SampleFunction {
 public:
  virtual ~SampleFunction() = default;

  // The fields that the function consumes; empty: all. A function that consumes all fields returns all fields of the
  // sample; any other function returns the fields that it consumes.
  virtual const std::vector<std::string>& takes() const = 0;
  // Whether it only reads its input, in which case rows of arrays are passed without a copy.
  virtual bool only_reads() const { return false; }
  // kData is an error in the sample, handled according to on_error. kCancelled ends the loader: next() fails with
  // kCancelled. kConfig: the function does not fit the samples.
  virtual Result<FunctionResult> call(FunctionCall call) const = 0;
  virtual std::vector<std::string> explain() const = 0;  // describes the function and the thread or process that runs
                                                         // it, in lines

  // Returns the object that a loader calls instead if the function needs per-loader state; nullptr: this object. The
  // loader calls begin() before the first call, on the consumer's thread, and end() when it ends; calls that wait for
  // anything but the user's function must then return.
  virtual Result<std::shared_ptr<const SampleFunction>> for_loader() const { return nullptr; }
  virtual Result<void> begin() const { return {}; }
  virtual void end() const {}
};

}  // namespace feedline
