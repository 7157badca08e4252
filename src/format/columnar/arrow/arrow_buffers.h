// SPDX-License-Identifier: Apache-2.0
#pragma once

// The buffers in a record batch, with their positions in the file and their columns.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/arrow/arrow_messages.h"
#include "storage/reader.h"

namespace feedline::format {

// The compression codec of a batch's body.
enum class ArrowCodec : std::uint8_t { kNone, kLz4, kZstd };

struct ArrowBuffer {
  std::uint64_t offset = 0, bytes = 0;  // offset in the file, within the batch's body
};

// An array in a batch, with its child arrays.
struct ArrowArray {
  const ArrowField* field = nullptr;
  std::uint64_t length = 0, nulls = 0;
  std::vector<ArrowBuffer> buffers;
  std::vector<ArrowArray> children;
};

struct ArrowBody {
  ArrowCodec codec = ArrowCodec::kNone;
  std::vector<ArrowArray> arrays;  // one per field
};

// Parses the metadata of a record batch message. Fails with kData if the metadata does not match the body or `fields`.
Result<ArrowBody> read_arrow_body(const ArrowMessage& message, std::span<const ArrowField> fields);

// Reads and decompresses a buffer. Fails with kData if the buffer is damaged or its size is implausible.
Result<std::vector<std::byte>> read_arrow_buffer(const storage::Reader& reader, const ArrowBuffer& buffer,
                                                 ArrowCodec codec);

}  // namespace feedline::format
