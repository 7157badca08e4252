// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collects the features of records, from which fields are chosen.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "format/tfrecord/example.h"

namespace feedline::format {

// A summary of the values of one feature in all examined records.
struct FeatureSeen {
  ValueKind kind = ValueKind::kNone;   // type of the first feature with values
  bool is_list = false;                // in a SequenceExample's feature_lists: one feature per step
  bool is_image = false;               // whether the first byte string is an image
  std::uint64_t records = 0;           // records that have this feature with a type, even without values
  std::uint64_t fewest = 0, most = 0;  // values per record
  std::uint64_t columns = 0;           // values per step, in the first list with values
};

// Not thread-safe.
class FeatureSurvey {
 public:
  // Adds a record. Ignores a record that is not an Example, and returns false.
  bool add(std::span<const std::byte> record);
  void add(const FeatureSurvey& other);

  const std::map<std::string, FeatureSeen>& features() const { return features_; }
  std::uint64_t records() const { return records_; }
  // Returns the first few features as text: "image/encoded (bytes), label (int64)".
  std::string names() const;

 private:
  std::map<std::string, FeatureSeen> features_;
  std::uint64_t records_ = 0;
};

}  // namespace feedline::format
