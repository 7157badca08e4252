// SPDX-License-Identifier: Apache-2.0
#pragma once

// The buffers of a record batch: where they lie in the file, and which of them are a column's.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/arrow/arrow_messages.h"
#include "storage/reader.h"

namespace feedline::format {

// Of the body's compression.
enum class ArrowCodec : std::uint8_t { kNone, kLz4, kZstd };

struct ArrowBuffer {
  std::uint64_t offset = 0, bytes = 0;  // in the file, inside its batch's body
};

// An array of a batch, with the arrays inside it.
struct ArrowArray {
  const ArrowField* field = nullptr;
  std::uint64_t length = 0, nulls = 0;
  std::vector<ArrowBuffer> buffers;
  std::vector<ArrowArray> children;
};

struct ArrowBody {
  ArrowCodec codec = ArrowCodec::kNone;
  std::vector<ArrowArray> arrays;  // of the fields
};

// What the metadata of a message says of its body: of a batch of `fields`. kData: it does not fit.
Result<ArrowBody> read_arrow_body(const ArrowMessage& message, std::span<const ArrowField> fields);

// A buffer's plain bytes, in memory of their own. kData: damaged; more than a buffer of so many bytes can hold.
Result<std::vector<std::byte>> read_arrow_buffer(const storage::Reader& reader, const ArrowBuffer& buffer,
                                                 ArrowCodec codec);

}  // namespace feedline::format
