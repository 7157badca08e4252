// SPDX-License-Identifier: Apache-2.0
#pragma once

// The buffers of a record batch: their positions in the file, and the columns they belong to.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/arrow/arrow_messages.h"
#include "storage/reader.h"

namespace feedline::format {

// Compression of the body.
enum class ArrowCodec : std::uint8_t { kNone, kLz4, kZstd };

struct ArrowBuffer {
  std::uint64_t offset = 0, bytes = 0;  // offset in the file, within the batch's body
};

// An array of a batch, with its child arrays.
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

// Parses the metadata of a message with a batch of `fields`. kData: the metadata is inconsistent with the body or the
// fields.
Result<ArrowBody> read_arrow_body(const ArrowMessage& message, std::span<const ArrowField> fields);

// Reads and decompresses a buffer. kData: it is damaged, or its size is not plausible.
Result<std::vector<std::byte>> read_arrow_buffer(const storage::Reader& reader, const ArrowBuffer& buffer,
                                                 ArrowCodec codec);

}  // namespace feedline::format
