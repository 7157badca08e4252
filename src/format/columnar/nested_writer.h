// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes values of nested columns, such as lists of structs: as JSON text or, if the column contains bytes, in a binary
// form that python/bindings/interop/nested_values.cpp parses. A mark distinguishes the two forms.
//
//     value    base::kNestedMark, node
//     node     'n' | 't' | 'f' | 'i', i64 | 'u', u64 | 'd', f64 | 's', text | 'b', text (bytes) | list | object
//     list     'l', nodes, 'e'
//     object   'o', pairs of a text and a node, each after 'k', 'e'
//     text     u64 size, bytes

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::format {

// Calls must form one value. Requires: bytes() only in the binary form.
class NestedWriter {
 public:
  explicit NestedWriter(bool is_binary);

  void null();
  // Fails with kData if the text is not UTF-8.
  Result<void> text(std::span<const std::byte> text);
  void bytes(std::span<const std::byte> bytes);
  // In JSON, floats always have a fraction or an exponent, and Python reads them as the same number. Values that are
  // not finite are NaN, Infinity and -Infinity. Requires: `bytes` is one number.
  void number(DType dtype, std::span<const std::byte> bytes);
  void begin_list() { begin('[', 'l'); }
  void end_list() { end(']'); }
  void begin_object() { begin('{', 'o'); }
  Result<void> key(std::span<const std::byte> name);
  void end_object() { end('}'); }

  std::string take() { return std::move(out_); }

 private:
  void separate();
  void begin(char json, char binary);
  void end(char json);
  void append_sized(std::span<const std::byte> bytes);
  void append_raw(char tag, const void* value, std::size_t bytes);
  void append_quoted(std::span<const std::byte> text);
  void append_real(double value);

  const bool is_binary_;
  bool has_previous_ = false;  // in JSON: whether a comma precedes the next value or key
  std::string out_;
};

}  // namespace feedline::format
