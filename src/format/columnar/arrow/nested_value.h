// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a value of a nested column: a list of structs, text or bytes, or a map.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "feedline/error.h"
#include "format/columnar/arrow/arrow_buffers.h"
#include "format/columnar/nested_writer.h"

namespace feedline::format {

// Returns whether all values below a list or map can be written: it has no decimals, unions, or keys that are not text.
bool may_be_nested(const ArrowField& field);
// Returns whether it contains byte strings.
bool has_bytes(const ArrowField& field);

// Returns the decompressed contents of a buffer, which stay valid while the value is written.
using BufferContents = std::function<Result<std::span<const std::byte>>(const ArrowBuffer& buffer, ArrowCodec codec)>;

// The values of dictionary-encoded fields, by the id of the dictionary. `body` has one array, which refers to `field`.
struct NestedDictionary {
  ArrowField field;
  ArrowBody body;
};
using NestedDictionaries = std::map<std::int64_t, std::shared_ptr<const NestedDictionary>>;

struct NestedArray {
  const ArrowArray& array;
  ArrowCodec codec;
  const NestedDictionaries& dictionaries;
};

// Writes a row's value. `path` leads from the top-level array through structs to the list or map. Fails with kData if
// offsets exceed their arrays or a text is not UTF-8. Returns false if the value is null. Requires: may_be_nested().
Result<bool> write_nested(const NestedArray& nested, std::span<const std::size_t> path, std::uint64_t row,
                          const BufferContents& contents, NestedWriter& writer);

// Calls use(buffer) for each buffer that write_nested() may read.
void for_each_buffer(const ArrowArray& array, const std::function<void(const ArrowBuffer& buffer)>& use);

}  // namespace feedline::format
