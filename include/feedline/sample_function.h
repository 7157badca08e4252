// SPDX-License-Identifier: Apache-2.0
#pragma once

// A function of the user's on fields of samples, which a dataset has behind its operations: Dataset::map().

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
  ArrayView array = {};  // C-contiguous; of bytes, text and JSON, uint8 of the shape (bytes,)
  bool absent = false;   // the sample does not have the field, and there is no array
  // The array is there as long as somebody holds this. It is nobody else's, unless the function only reads.
  std::shared_ptr<void> memory = nullptr;
};

struct FunctionCall {
  std::vector<FunctionValue> values;  // of the fields that it takes, in its order
  // What its randomness is to be keyed by, so that the sample draws the same whatever ran before it.
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t draw = 0;  // see GivenSample
};

struct FunctionResult {
  std::vector<FunctionValue> values;
  std::uint64_t waited_ns = 0;  // of the call, before the function could begin: for a lock that others hold
};

// Immutable and thread-safe: threads of the engine call it, several at once, with no lock of theirs held. What it gives
// goes by its call alone. Throws nothing.
class SampleFunction {
 public:
  virtual ~SampleFunction() = default;

  // The fields that it takes; none: all. Where it takes all, a sample has the fields that it gives and no others;
  // else it gives those that it takes.
  virtual const std::vector<std::string>& takes() const = 0;
  // Does it only read what it takes? Then it gets rows of arrays where they are stored.
  virtual bool only_reads() const { return false; }
  // kData is the sample's error, which on_error is about. kCancelled ends the loader: next() fails with it. kConfig:
  // the function does not fit the samples.
  virtual Result<FunctionResult> call(FunctionCall call) const = 0;
  virtual std::vector<std::string> explain() const = 0;  // what runs, and where, in lines

  // What a loader calls in its place, where it has something that belongs to one loader; nullptr: itself. begin() comes
  // before the first call, from the consumer's thread; end() when the loader ends: calls that wait for something else
  // than the function itself come back.
  virtual Result<std::shared_ptr<const SampleFunction>> for_loader() const { return nullptr; }
  virtual Result<void> begin() const { return {}; }
  virtual void end() const {}
};

}  // namespace feedline
