// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/example.h"

#include <cstring>

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

// Counts the varints in a run. Returns nullopt if one is truncated or too long.
std::optional<std::uint64_t> count_varints(Bytes run) {
  std::uint64_t count = 0;
  for (; !run.empty(); ++count)
    if (!take_varint(run)) return {};
  return count;
}

// Reads the name of a map entry and the parts of its value.
bool read_entry(Bytes entry, std::string_view& name, Pieces& value) {
  WireReader reader(entry);
  while (reader.next()) {
    if (reader.is(1, WireType::kLength)) name = text_of(reader.bytes());
    if (reader.is(2, WireType::kLength)) value.add(reader.bytes());
  }
  return !reader.is_damaged();
}

// Iterates over the entries of a message that contains one map.
template <typename Take>
bool each_entry(Bytes map, Take&& take) {
  WireReader reader(map);
  while (reader.next()) {
    if (!reader.is(1, WireType::kLength)) continue;
    std::string_view name;
    Pieces value;
    if (!read_entry(reader.bytes(), name, value) || !take(name, std::move(value))) return false;
  }
  return !reader.is_damaged();
}

}  // namespace

std::string_view name_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::kNone:
      return "no values";
    case ValueKind::kBytes:
      return "bytes";
    case ValueKind::kFloats:
      return "float";
    case ValueKind::kInts:
      return "int64";
  }
  return "";
}

bool Feature::merge(Bytes message) {
  WireReader reader(message);
  while (reader.next()) {
    const std::uint32_t number = reader.number();
    if (number > static_cast<std::uint32_t>(ValueKind::kInts) || !reader.is(number, WireType::kLength)) continue;
    const auto kind = static_cast<ValueKind>(number);
    if (kind != kind_) lists_.clear();
    kind_ = kind;
    lists_.add(reader.bytes());
  }
  return !reader.is_damaged();
}

template <typename Packed, typename Single>
bool Feature::each_number(Packed&& packed, Single&& single) const {
  const WireType alone = kind_ == ValueKind::kFloats ? WireType::kFixed32 : WireType::kVarint;
  return lists_.each([&](Bytes list) {
    WireReader reader(list);
    while (reader.next()) {
      if (reader.is(1, WireType::kLength) && !packed(reader.bytes())) return false;
      if (reader.is(1, alone) && !single(reader.bytes())) return false;
    }
    return !reader.is_damaged();
  });
}

std::optional<std::uint64_t> Feature::count() const {
  std::uint64_t count = 0;
  const auto add = [&](std::optional<std::uint64_t> more) { return more ? (count += *more, true) : false; };
  const auto one = [&](Bytes) { return add(1); };
  bool is_whole = true;
  if (kind_ == ValueKind::kBytes) is_whole = each_bytes(one);
  if (kind_ == ValueKind::kInts) is_whole = each_number([&](Bytes run) { return add(count_varints(run)); }, one);
  if (kind_ == ValueKind::kFloats)
    is_whole = each_number(
        [&](Bytes run) {
          return add(run.size() % sizeof(float) == 0 ? std::optional(run.size() / sizeof(float)) : std::nullopt);
        },
        one);
  return is_whole ? std::optional(count) : std::nullopt;
}

void Feature::write_numbers(std::byte* out) const {
  const auto copy = [&](Bytes run) {
    if (!run.empty()) std::memcpy(out, run.data(), run.size());
    out += run.size();
    return true;
  };
  const auto decode = [&](Bytes run) {
    while (!run.empty()) {
      const std::uint64_t value = take_varint(run).value_or(0);
      std::memcpy(out, &value, sizeof value);
      out += sizeof value;
    }
    return true;
  };
  if (kind_ == ValueKind::kFloats)
    each_number(copy, copy);
  else
    each_number(decode, decode);
}

bool FeatureList::each(const std::function<bool(const Feature&)>& take) const {
  return lists_.each([&](Bytes list) {
    WireReader reader(list);
    while (reader.next()) {
      if (!reader.is(1, WireType::kLength)) continue;
      Feature feature;
      if (!feature.merge(reader.bytes()) || !take(feature)) return false;
    }
    return !reader.is_damaged();
  });
}

bool walk_example(Bytes record, const std::function<bool(std::string_view, const Feature&)>& feature,
                  const std::function<bool(std::string_view, const FeatureList&)>& list) {
  const auto take_feature = [&](std::string_view name, const Pieces& value) {
    Feature one;
    return value.each([&](Bytes piece) { return one.merge(piece); }) && feature(name, one);
  };
  const auto take_list = [&](std::string_view name, Pieces value) { return list(name, FeatureList(std::move(value))); };
  WireReader reader(record);
  while (reader.next()) {
    if (reader.is(1, WireType::kLength) && !each_entry(reader.bytes(), take_feature)) return false;
    if (reader.is(2, WireType::kLength) && !each_entry(reader.bytes(), take_list)) return false;
  }
  return !reader.is_damaged();
}

}  // namespace feedline::format
