// SPDX-License-Identifier: Apache-2.0
#pragma once

// tf.train.Example and tf.train.SequenceExample, read where they lie: names of features and their values.
//
//     Example          { Features features = 1; }
//     SequenceExample  { Features context = 1; FeatureLists feature_lists = 2; }    an Example is one without lists
//     Features         { map<string, Feature> feature = 1; }
//     FeatureLists     { map<string, FeatureList> feature_list = 1; }
//     FeatureList      { repeated Feature feature = 1; }
//     Feature          { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }    each: repeated value = 1
//
// Source: tensorflow/core/example/{example,feature}.proto. As in protocol buffers, entries of a map stand in any order
// and the last one of a name counts, numbers may be packed or not, and what comes in several pieces is put together.

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

// The content of a message that may have come in several pieces.
class Pieces {
 public:
  void clear() { *this = {}; }
  void add(std::span<const std::byte> piece) {
    if (std::exchange(has_first_, true))
      more_.push_back(piece);
    else
      first_ = piece;
  }
  // Calls `take` for each piece, until one gives false.
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

enum class ValueKind : std::uint8_t { kNone, kBytes, kFloats, kInts };  // the numbers of Feature's fields
// "bytes", "float" or "int64".
std::string_view name_of(ValueKind kind);

// One feature's values. The record's bytes must outlive it.
class Feature {
 public:
  // Takes a Feature message in, behind what it has already. false: it is damaged.
  bool merge(std::span<const std::byte> message);

  ValueKind kind() const { return kind_; }
  // Of byte strings: calls `take` for each, until one gives false. false: so it did, or the values are damaged.
  // Requires: kBytes.
  template <typename Take>
  bool each_bytes(Take&& take) const;
  // How many values there are; nullopt: they are damaged.
  std::optional<std::uint64_t> count() const;
  // Writes all values, float32 or int64, which need not be aligned. Requires: kFloats or kInts, count() gave their
  // number, and room for them.
  void write_numbers(std::byte* out) const;

 private:
  // Calls `packed` for runs of packed numbers and `single` for others, with their bytes.
  template <typename Packed, typename Single>
  bool each_number(Packed&& packed, Single&& single) const;

  ValueKind kind_ = ValueKind::kNone;
  Pieces lists_;  // BytesList, FloatList or Int64List messages
};

// A feature of each step. The record's bytes must outlive it.
class FeatureList {
 public:
  explicit FeatureList(Pieces lists) : lists_(std::move(lists)) {}
  // Calls `take` for each step's feature, until one gives false. false: so it did, or the list is damaged.
  bool each(const std::function<bool(const Feature&)>& take) const;

 private:
  Pieces lists_;
};

// Calls `feature` for every feature of the record and `list` for every list, in the order in which they stand; of those
// of one name the last counts. false: it is no Example, or one of them gave false.
bool walk_example(std::span<const std::byte> record,
                  const std::function<bool(std::string_view, const Feature&)>& feature,
                  const std::function<bool(std::string_view, const FeatureList&)>& list);

// The bytes of a string as a text.
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
