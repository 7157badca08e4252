// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the features of tf.train.Example and tf.train.SequenceExample messages in place.
//
//     Example          { Features features = 1; }
//     SequenceExample  { Features context = 1; FeatureLists feature_lists = 2; }    an Example is one without lists
//     Features         { map<string, Feature> feature = 1; }
//     FeatureLists     { map<string, FeatureList> feature_list = 1; }
//     FeatureList      { repeated Feature feature = 1; }
//     Feature          { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }    each: repeated value = 1
//
// Source: tensorflow/core/example/{example,feature}.proto. As in other protocol buffers, map entries may have any
// order, and the last entry with a name is used. Numbers may be packed or not, and the parts of a message are merged.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "format/wire_reader.h"

namespace feedline::format {

// The contents of a message, which may be in several parts.
class Pieces {
 public:
  void clear() { *this = {}; }
  void add(std::span<const std::byte> piece) {
    if (std::exchange(has_first_, true))
      more_.push_back(piece);
    else
      first_ = piece;
  }
  // Calls `take` for each part until it returns false.
  template <typename Take>
  bool each(Take&& take) const {
    if (has_first_ && !take(first_)) return false;
    for (const auto piece : more_)
      if (!take(piece)) return false;
    return true;
  }

 private:
  bool has_first_ = false;
  std::span<const std::byte> first_;
  std::vector<std::span<const std::byte>> more_;
};

enum class ValueKind : std::uint8_t { kNone, kBytes, kFloats, kInts };  // the field numbers in Feature
// Returns "bytes", "float" or "int64".
std::string_view name_of(ValueKind kind);

// The values of a feature. The bytes of the record must outlive this object.
class Feature {
 public:
  // Merges a Feature message into this one. Returns false if it is damaged.
  bool merge(std::span<const std::byte> message);

  ValueKind kind() const { return kind_; }
  // Calls `take` for each byte string until `take` returns false. Returns false if `take` did, or if the values are
  // damaged. Requires: kBytes.
  template <typename Take>
  bool each_bytes(Take&& take) const;
  // Returns the number of values, or nullopt if they are damaged.
  std::optional<std::uint64_t> count() const;
  // Writes all values as float32 or int64 to memory that may be unaligned. Requires: the kind is kFloats or kInts,
  // count() has succeeded, and `out` is large enough.
  void write_numbers(std::byte* out) const;

 private:
  // Calls `packed` with the bytes of each packed run, and `single` with those of each unpacked number.
  template <typename Packed, typename Single>
  bool each_number(Packed&& packed, Single&& single) const;

  ValueKind kind_ = ValueKind::kNone;
  Pieces lists_;  // BytesList, FloatList or Int64List messages
};

// A list with one feature per step. The bytes of the record must outlive this object.
class FeatureList {
 public:
  explicit FeatureList(Pieces lists) : lists_(std::move(lists)) {}
  // Calls `take` for the feature of each step until `take` returns false. Returns false if `take` did, or if the list
  // is damaged.
  bool each(const std::function<bool(const Feature&)>& take) const;

 private:
  Pieces lists_;
};

// Calls `feature` for every feature and `list` for every list, in the order of the record. If a name repeats, its last
// entry is valid. Returns false if the record is not an Example or a callback returned false.
bool walk_example(std::span<const std::byte> record,
                  const std::function<bool(std::string_view, const Feature&)>& feature,
                  const std::function<bool(std::string_view, const FeatureList&)>& list);

// Returns the bytes of a string as text.
inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename Take>
bool Feature::each_bytes(Take&& take) const {
  return lists_.each([&](std::span<const std::byte> list) {
    WireReader reader(list);
    while (reader.next())
      if (reader.is(1, WireType::kLength) && !take(reader.bytes())) return false;
    return !reader.is_damaged();
  });
}

}  // namespace feedline::format
