// SPDX-License-Identifier: Apache-2.0
#include "interop/nested_values.h"

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "base/nested_mark.h"

namespace feedline::python {
namespace {

namespace nb = nanobind;

constexpr int kDeepest = 64;

class NestedParser {
 public:
  explicit NestedParser(std::span<const std::byte> bytes) : left_(bytes) {}

  nb::object node(int depth) {
    if (depth > kDeepest) damaged();
    switch (tag()) {
      case 'n':
        return nb::none();
      case 't':
        return nb::bool_(true);
      case 'f':
        return nb::bool_(false);
      case 'i':
        return nb::int_(number<std::int64_t>());
      case 'u':
        return nb::int_(number<std::uint64_t>());
      case 'd':
        return nb::float_(number<double>());
      case 's':
        return text();
      case 'b': {
        const auto bytes = sized();
        return nb::bytes(bytes.data(), bytes.size());
      }
      case 'l': {
        nb::list list;
        while (!takes_end()) list.append(node(depth + 1));
        return list;
      }
      case 'o': {
        nb::dict dict;
        while (!takes_end()) {
          if (tag() != 'k') damaged();
          nb::object key = text();
          dict[key] = node(depth + 1);
        }
        return dict;
      }
      default:
        damaged();
    }
  }
  bool is_at_end() const { return left_.empty(); }
  [[noreturn]] static void damaged() { throw std::invalid_argument("a nested value is damaged"); }

 private:
  std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > left_.size()) damaged();
    const auto taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }
  char tag() { return static_cast<char>(take(1).front()); }
  bool takes_end() {
    if (left_.empty() || left_.front() != std::byte{'e'}) return false;
    left_ = left_.subspan(1);
    return true;
  }
  template <typename Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::span<const std::byte> sized() { return take(number<std::uint64_t>()); }
  nb::object text() {
    const auto bytes = sized();
    PyObject* const decoded = PyUnicode_DecodeUTF8(reinterpret_cast<const char*>(bytes.data()),
                                                   static_cast<Py_ssize_t>(bytes.size()), nullptr);
    if (decoded == nullptr) throw nb::python_error();
    return nb::steal(decoded);
  }

  std::span<const std::byte> left_;
};

}  // namespace

nanobind::object nested_value(std::span<const std::byte> value) {
  NestedParser parser(value.subspan(base::kNestedMark.size()));
  nanobind::object made = parser.node(0);
  if (!parser.is_at_end()) NestedParser::damaged();
  return made;
}

}  // namespace feedline::python
