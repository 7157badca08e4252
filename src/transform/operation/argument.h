// SPDX-License-Identifier: Apache-2.0
#pragma once

// Descriptions of operations' arguments. Each description binds a name to a member of an op:: struct; the type of the
// member determines the kind.
//
//   static constexpr auto kArguments = std::to_array({argument<&op::TrimBorder::border>("border_size", {.low = 0})});

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "feedline/operation_types.h"
#include "transform/operation/argument_words.h"

namespace feedline::transform {

struct IntegerLimits {
  std::int64_t low = -std::numeric_limits<int>::max();
  std::int64_t high = std::numeric_limits<int>::max();
};

// The functions below expect a pointer to the struct that contains the member.
struct Argument {
  using Values = std::vector<std::pair<std::string, ArgumentValue>>;

  std::string_view name;
  std::string_view kind;
  bool is_optional = false;
  IntegerLimits limits;
  std::vector<std::string_view> (*words)() = nullptr;                   // of kind "word" only
  bool (*read)(const ArgumentValue& value, void* arguments) = nullptr;  // returns false for a value of another kind
  ArgumentValue (*show)(const void* arguments) = nullptr;
};

// kConfig: a name is not in `known`, or a value is of the wrong kind.
Result<void> read_arguments(std::span<const Argument> known, const Argument::Values& values, void* arguments);

// ---- kinds: conversion between a T and an argument's value ----

template <typename T>
struct KindOf;

template <typename T, typename Self>
struct PlainKind {
  static constexpr bool kIsOptional = false;
  static constexpr std::vector<std::string_view> (*kWordList)() = nullptr;
};
#define FEEDLINE_KIND(TYPE, NAME)                            \
  template <>                                                \
  struct KindOf<TYPE> : PlainKind<TYPE, KindOf<TYPE>> {      \
    static constexpr std::string_view kName = NAME;          \
    static bool read(const ArgumentValue& value, TYPE& out); \
    static ArgumentValue show(const TYPE& value);            \
  }
using Pair = std::array<double, 2>;
using IntegerPair = std::array<int, 2>;
using FillColour = std::array<std::uint8_t, 3>;
FEEDLINE_KIND(bool, "flag");
FEEDLINE_KIND(int, "integer");
FEEDLINE_KIND(double, "real");
FEEDLINE_KIND(std::string, "text");
FEEDLINE_KIND(DType, "dtype");
FEEDLINE_KIND(Size, "size");
FEEDLINE_KIND(Padding, "sides");
FEEDLINE_KIND(FillColour, "color");
FEEDLINE_KIND(Range, "range");
FEEDLINE_KIND(Pair, "pair");
FEEDLINE_KIND(IntegerPair, "integer_pair");
FEEDLINE_KIND(std::vector<int>, "integers");
FEEDLINE_KIND(std::vector<float>, "channel_values");
FEEDLINE_KIND(std::vector<double>, "reals");
FEEDLINE_KIND(std::vector<std::string>, "names");
FEEDLINE_KIND(std::vector<Operation>, "chain");
FEEDLINE_KIND(std::vector<std::vector<Operation>>, "chains");
#undef FEEDLINE_KIND

template <typename T>
struct KindOf<std::optional<T>> : KindOf<T> {
  static constexpr bool kIsOptional = true;
  static bool read(const ArgumentValue& value, std::optional<T>& out) {
    out.reset();
    return std::holds_alternative<std::monostate>(value) || KindOf<T>::read(value, out.emplace());
  }
  static ArgumentValue show(const std::optional<T>& value) { return value ? KindOf<T>::show(*value) : ArgumentValue(); }
};

// A word that must be in a table.
template <const auto& kTable>
struct WordKind : PlainKind<void, void> {
  static constexpr std::string_view kName = "word";
  static std::vector<std::string_view> list() {
    std::vector<std::string_view> words;
    for (const auto& [word, value] : kTable) words.push_back(word);
    return words;
  }
  static constexpr std::vector<std::string_view> (*kWordList)() = &list;
  template <typename T>
  static bool read(const ArgumentValue& value, T& out) {
    const std::string* const given = std::get_if<std::string>(&value);
    for (const auto& [word, known] : kTable) {
      if (given == nullptr || *given != word) continue;
      out = known;
      return true;
    }
    return false;
  }
  template <typename T>
  static ArgumentValue show(const T& value) {
    return std::string(word_in(kTable, value));
  }
};
template <typename T>
requires std::is_enum_v<T>
struct KindOf<T> : WordKind<kWords<T>> {
};

template <>
struct KindOf<Interpolation> : WordKind<kWords<Interpolation>> {
  static constexpr std::string_view kName = "interpolation";
};
template <>
struct KindOf<PaddingMode> : WordKind<kWords<PaddingMode>> {
  static constexpr std::string_view kName = "padding_mode";
};

// KindOf<T> with another name, for values that callers may write in other forms too.
template <typename T, typename Name>
struct NamedKind : KindOf<T> {
  static constexpr std::string_view kName = Name::kName;
};
struct EdgeSizeName {
  static constexpr std::string_view kName = "edge_size";
};
struct AnglesName {
  static constexpr std::string_view kName = "angles";
};
struct BothDirectionsName {
  static constexpr std::string_view kName = "both_directions";
};
struct FactorName {
  static constexpr std::string_view kName = "factor";
};
struct HueName {
  static constexpr std::string_view kName = "hue";
};
using EdgeSize = NamedKind<Size, EdgeSizeName>;              // {h, 0}: the smaller edge; {0, 0}: no size
using Angles = NamedKind<Range, AnglesName>;                 // degrees; one number d means (-d, d)
using BothDirections = NamedKind<Pair, BothDirectionsName>;  // x and y; one number sets both
using Factor = NamedKind<Range, FactorName>;                 // around 1; one number v means (1 - v, 1 + v)
using HueShift = NamedKind<Range, HueName>;                  // around 0; one number v means (-v, v)

// Maps True to one enumerator, and False to another.
template <auto kTrue, auto kFalse>
struct FlagFor : PlainKind<void, void> {
  static constexpr std::string_view kName = "flag";
  static bool read(const ArgumentValue& value, decltype(kTrue)& out) {
    bool flag = false;
    if (!KindOf<bool>::read(value, flag)) return false;
    out = flag ? kTrue : kFalse;
    return true;
  }
  static ArgumentValue show(const decltype(kTrue)& value) { return value == kTrue; }
};

template <typename T, typename Class>
T type_of_member(T Class::*);
template <typename T, typename Class>
Class class_of_member(T Class::*);

template <auto kMember, typename Kind = KindOf<decltype(type_of_member(kMember))>>
constexpr Argument argument(std::string_view name, IntegerLimits limits = {}) {
  using Class = decltype(class_of_member(kMember));
  return {name,
          Kind::kName,
          Kind::kIsOptional,
          limits,
          Kind::kWordList,
          [](const ArgumentValue& value, void* arguments) {
            return Kind::read(value, static_cast<Class*>(arguments)->*kMember);
          },
          [](const void* arguments) { return Kind::show(static_cast<const Class*>(arguments)->*kMember); }};
}

}  // namespace feedline::transform
