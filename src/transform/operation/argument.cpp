// SPDX-License-Identifier: Apache-2.0
#include "transform/operation/argument.h"

#include <algorithm>
#include <cmath>

namespace feedline::transform {
namespace {

std::optional<double> number_in(const ArgumentValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

// Accepts only whole numbers in the range of T.
template <typename T>
bool read_whole(double number, T& out) {
  if (!(number >= static_cast<double>(std::numeric_limits<T>::min()) &&
        number <= static_cast<double>(std::numeric_limits<T>::max())) ||
      number != std::floor(number))
    return false;
  out = static_cast<T>(number);
  return true;
}

template <typename T>
bool read_number(double number, T& out) {
  if constexpr (std::is_integral_v<T>) return read_whole(number, out);
  out = static_cast<T>(number);
  return true;
}

// Requires: there is one number per output.
template <typename... T>
bool read_numbers(const ArgumentValue& value, T&... out) {
  const auto* const numbers = std::get_if<std::vector<double>>(&value);
  if (numbers == nullptr || numbers->size() != sizeof...(T)) return false;
  auto next = numbers->begin();
  return (read_number(*next++, out) && ...);
}

template <typename T>
bool read_list(const ArgumentValue& value, std::vector<T>& out) {
  const auto* const numbers = std::get_if<std::vector<double>>(&value);
  if (numbers == nullptr) return false;
  out.resize(numbers->size());
  return std::ranges::equal(*numbers, out, [](double number, T& point) { return read_number(number, point); });
}

template <typename... T>
ArgumentValue show_numbers(T... numbers) {
  return std::vector<double>{static_cast<double>(numbers)...};
}

template <typename T>
bool read_same(const ArgumentValue& value, T& out) {
  const T* const given = std::get_if<T>(&value);
  if (given != nullptr) out = *given;
  return given != nullptr;
}

Result<void> refuse(const Argument& argument) {
  std::string words;
  if (argument.words != nullptr)
    for (const std::string_view word : argument.words())
      words += (words.empty() ? "\"" : ", \"") + std::string(word) + "\"";
  return config_error(std::string(argument.name) +
                      (words.empty() ? ": a value of kind '" + std::string(argument.kind) + "' is needed"
                                     : " must be one of " + words));
}

}  // namespace

Result<void> read_arguments(std::span<const Argument> known, const Argument::Values& values, void* arguments) {
  for (const auto& [name, value] : values) {
    const auto argument = std::ranges::find(known, std::string_view(name), &Argument::name);
    if (argument == known.end()) return config_error("there is no argument '" + name + "'");
    if (!argument->read(value, arguments)) return refuse(*argument);
  }
  return {};
}

bool KindOf<bool>::read(const ArgumentValue& value, bool& out) { return read_same(value, out); }
ArgumentValue KindOf<bool>::show(const bool& value) { return value; }

bool KindOf<int>::read(const ArgumentValue& value, int& out) {
  const auto number = number_in(value);
  return number && read_whole(*number, out);
}
ArgumentValue KindOf<int>::show(const int& value) { return std::int64_t{value}; }

bool KindOf<double>::read(const ArgumentValue& value, double& out) {
  const auto number = number_in(value);
  out = number.value_or(out);
  return number.has_value();
}
ArgumentValue KindOf<double>::show(const double& value) { return value; }

bool KindOf<std::string>::read(const ArgumentValue& value, std::string& out) { return read_same(value, out); }
ArgumentValue KindOf<std::string>::show(const std::string& value) { return value; }

bool KindOf<DType>::read(const ArgumentValue& value, DType& out) {
  const auto* const word = std::get_if<std::string>(&value);
  for (int i = 0; word != nullptr && i <= static_cast<int>(DType::kBfloat16); ++i) {
    out = static_cast<DType>(i);
    if (name_of(out) == *word) return true;
  }
  return false;
}
ArgumentValue KindOf<DType>::show(const DType& value) { return std::string(name_of(value)); }

bool KindOf<Size>::read(const ArgumentValue& value, Size& out) { return read_numbers(value, out.height, out.width); }
ArgumentValue KindOf<Size>::show(const Size& value) { return show_numbers(value.height, value.width); }

bool KindOf<Padding>::read(const ArgumentValue& value, Padding& out) {
  return read_numbers(value, out.left, out.top, out.right, out.bottom);
}
ArgumentValue KindOf<Padding>::show(const Padding& value) {
  return show_numbers(value.left, value.top, value.right, value.bottom);
}

bool KindOf<FillColour>::read(const ArgumentValue& value, FillColour& out) {
  return read_numbers(value, out[0], out[1], out[2]);
}
ArgumentValue KindOf<FillColour>::show(const FillColour& value) { return show_numbers(value[0], value[1], value[2]); }

bool KindOf<Range>::read(const ArgumentValue& value, Range& out) { return read_numbers(value, out.low, out.high); }
ArgumentValue KindOf<Range>::show(const Range& value) { return show_numbers(value.low, value.high); }

bool KindOf<Pair>::read(const ArgumentValue& value, Pair& out) { return read_numbers(value, out[0], out[1]); }
ArgumentValue KindOf<Pair>::show(const Pair& value) { return show_numbers(value[0], value[1]); }

bool KindOf<IntegerPair>::read(const ArgumentValue& value, IntegerPair& out) {
  return read_numbers(value, out[0], out[1]);
}
ArgumentValue KindOf<IntegerPair>::show(const IntegerPair& value) { return show_numbers(value[0], value[1]); }

bool KindOf<std::vector<int>>::read(const ArgumentValue& value, std::vector<int>& out) { return read_list(value, out); }
ArgumentValue KindOf<std::vector<int>>::show(const std::vector<int>& value) {
  return std::vector<double>(value.begin(), value.end());
}

bool KindOf<std::vector<float>>::read(const ArgumentValue& value, std::vector<float>& out) {
  return read_list(value, out);
}
ArgumentValue KindOf<std::vector<float>>::show(const std::vector<float>& value) {
  return std::vector<double>(value.begin(), value.end());
}

bool KindOf<std::vector<double>>::read(const ArgumentValue& value, std::vector<double>& out) {
  return read_same(value, out);
}
ArgumentValue KindOf<std::vector<double>>::show(const std::vector<double>& value) { return value; }

// Callers pass an empty list as a list of numbers.
bool KindOf<std::vector<std::string>>::read(const ArgumentValue& value, std::vector<std::string>& out) {
  out.clear();
  const auto* const numbers = std::get_if<std::vector<double>>(&value);
  return (numbers != nullptr && numbers->empty()) || read_same(value, out);
}
ArgumentValue KindOf<std::vector<std::string>>::show(const std::vector<std::string>& value) { return value; }

bool KindOf<std::vector<Operation>>::read(const ArgumentValue& value, std::vector<Operation>& out) {
  const auto* const chains = std::get_if<std::vector<std::vector<Operation>>>(&value);
  if (chains == nullptr || chains->size() != 1) return false;
  out = chains->front();
  return true;
}
ArgumentValue KindOf<std::vector<Operation>>::show(const std::vector<Operation>& value) {
  return std::vector<std::vector<Operation>>{value};
}

bool KindOf<std::vector<std::vector<Operation>>>::read(const ArgumentValue& value,
                                                       std::vector<std::vector<Operation>>& out) {
  out.clear();
  const auto* const numbers = std::get_if<std::vector<double>>(&value);
  return (numbers != nullptr && numbers->empty()) || read_same(value, out);
}
ArgumentValue KindOf<std::vector<std::vector<Operation>>>::show(const std::vector<std::vector<Operation>>& value) {
  return value;
}

}  // namespace feedline::transform
