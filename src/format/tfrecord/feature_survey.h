// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which features records have: what fields are chosen by.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "format/tfrecord/example.h"

namespace feedline::format {

// What all records seen have under one name.
struct FeatureSeen {
  ValueKind kind = ValueKind::kNone;   // of the first one with values
  bool is_list = false;                // of a SequenceExample's feature_lists: a feature for each step
  bool is_image = false;               // the first byte string is one
  std::uint64_t records = 0;           // that have it, and a kind of values, be they none
  std::uint64_t fewest = 0, most = 0;  // values of one record
  std::uint64_t columns = 0;           // values of a step, of the first that has some
};

// Not for several threads at once.
class FeatureSurvey {
 public:
  // false: the record is no Example; nothing of it counts.
  bool add(std::span<const std::byte> record);
  void add(const FeatureSurvey& other);

  const std::map<std::string, FeatureSeen>& features() const { return features_; }
  std::uint64_t records() const { return records_; }
  // "image/encoded (bytes), label (int64)", the first few.
  std::string names() const;

 private:
  std::map<std::string, FeatureSeen> features_;
  std::uint64_t records_ = 0;
};

}  // namespace feedline::format
