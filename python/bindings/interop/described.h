// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes an engine struct once for both languages, as a list of its members with their Python names. This provides
// conversion to a dict and from a dict, in which options may be missing: they keep their C++ defaults.
//
//   template <>
//   inline constexpr auto kMembers<TreeMemory> =
//       std::tuple(Member{"time_ns", &TreeMemory::time_ns}, Member{"bytes", &TreeMemory::bytes});
//
// A list is in one .cpp file, after those of the structs of its members. Requires: the GIL is held.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "interop/enum_names.h"
#include "interop/errors.h"
#include "interop/text_caster.h"

namespace feedline::python {

template <typename Struct>
inline constexpr std::tuple<> kMembers{};

template <typename T>
concept Described = std::tuple_size_v<std::remove_const_t<decltype(kMembers<T>)>> >
0;

// The Python type for a T, and the conversions in both directions. By default nothing is converted.
template <typename T>
struct Plain {
  using Type = T;
  static const T& of(const T& value) { return value; }
  static T read(Type value, const std::string& /*subject*/) { return value; }
};

template <typename T>
nanobind::object in_python(const T& value) {
  return nanobind::cast(Plain<T>::of(value));
}

template <typename Struct, typename ValueIn>
struct Member {
  using Value = ValueIn;
  const char* name;
  ValueIn Struct::*at;
  nanobind::object (*shown)(const ValueIn&) = &in_python<ValueIn>;
};
template <typename Struct, typename Value>
Member(const char*, Value Struct::*) -> Member<Struct, Value>;
template <typename Struct, typename Value>
Member(const char*, Value Struct::*, nanobind::object (*)(const Value&)) -> Member<Struct, Value>;

template <Described Struct>
nanobind::dict to_dict(const Struct& value) {
  nanobind::dict dict;
  std::apply([&](const auto&... member) { ((dict[member.name] = member.shown(value.*member.at)), ...); },
             kMembers<Struct>);
  return dict;
}

// subject: the struct's name in errors. Raises feedline.ConfigError for a missing member or a wrong type.
template <Described Struct>
Struct from_dict(const nanobind::dict& dict, const std::string& subject) {
  Struct made;
  const auto read = [&](const auto& member) {
    using Value = typename std::decay_t<decltype(member)>::Value;
    typename Plain<Value>::Type passed;
    if (!dict.contains(member.name) || !nanobind::try_cast(dict[member.name], passed))
      raise_config(subject + ": " + member.name + " is missing or has the wrong type");
    made.*member.at = Plain<Value>::read(std::move(passed), subject + ": " + member.name);
  };
  std::apply([&](const auto&... member) { (read(member), ...); }, kMembers<Struct>);
  return made;
}

template <Described T>
struct Plain<T> {
  using Type = nanobind::dict;
  static Type of(const T& value) { return to_dict(value); }
  static T read(const Type& value, const std::string& subject) { return from_dict<T>(value, subject); }
};

template <NamedEnum T>
struct Plain<T> {
  using Type = EnumArgument<T>;
  static Type of(T value) { return {value, {}}; }
  static T read(const Type& word, const std::string& subject) { return word.checked(subject); }
};

// Durations are numbers of seconds in Python.
template <typename Rep, typename Period>
struct Plain<std::chrono::duration<Rep, Period>> {
  using Type = double;
  using Duration = std::chrono::duration<Rep, Period>;
  static Type of(Duration value) { return std::chrono::duration<double>(value).count(); }
  // at most a century, because nanoseconds of a longer time would overflow
  static Duration read(Type seconds, const std::string& /*subject*/) {
    constexpr double kMost = 100.0 * 366 * 24 * 3600;
    return std::chrono::round<Duration>(std::chrono::duration<double>(std::clamp(seconds, 0.0, kMost)));
  }
};

template <typename T>
struct Plain<std::optional<T>> {
  using Type = std::optional<typename Plain<T>::Type>;
  static Type of(const std::optional<T>& value) { return value ? Type(Plain<T>::of(*value)) : Type(); }
  static std::optional<T> read(Type value, const std::string& subject) {
    return value ? std::optional<T>(Plain<T>::read(std::move(*value), subject)) : std::nullopt;
  }
};

template <typename T>
struct Plain<std::vector<T>> {
  using Type = std::vector<typename Plain<T>::Type>;
  static Type of(const std::vector<T>& values) {
    Type plain;
    plain.reserve(values.size());
    for (const T& value : values) plain.push_back(Plain<T>::of(value));
    return plain;
  }
  static std::vector<T> read(Type plain, const std::string& subject) {
    std::vector<T> values;
    values.reserve(plain.size());
    for (auto& value : plain) values.push_back(Plain<T>::read(std::move(value), subject));
    return values;
  }
};

template <typename T, std::size_t N>
struct Plain<std::array<T, N>> {
  using Type = std::vector<T>;
  static Type of(const std::array<T, N>& values) { return {values.begin(), values.end()}; }
};

// Returns the options in a dict of arguments; those not in it have their defaults. subject: their name in errors.
// Raises feedline.ConfigError for a wrong type, and TypeError for a name that Options does not have.
template <Described Options>
Options options_of(const nanobind::dict& arguments, const std::string& subject) {
  Options options;
  std::size_t known = 0;
  const auto read = [&](const auto& member) {
    using Value = typename std::decay_t<decltype(member)>::Value;
    if (!arguments.contains(member.name)) return;
    ++known;
    typename Plain<Value>::Type passed;
    if (!nanobind::try_cast(arguments[member.name], passed))
      raise_config(subject + ": " + member.name + " has the wrong type: " + repr_of(arguments[member.name]));
    options.*member.at = Plain<Value>::read(std::move(passed), subject + ": " + member.name);
  };
  std::apply([&](const auto&... member) { (read(member), ...); }, kMembers<Options>);
  if (known != arguments.size()) {
    for (const auto& [name, value] : arguments) {
      const auto is_one = [&](const auto& member) { return nanobind::cast<std::string>(name) == member.name; };
      if (!std::apply([&](const auto&... member) { return (is_one(member) || ...); }, kMembers<Options>))
        throw nanobind::type_error((subject + " has no option " + repr_of(name)).c_str());
    }
  }
  return options;
}

}  // namespace feedline::python
