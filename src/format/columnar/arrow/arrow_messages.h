// SPDX-License-Identifier: Apache-2.0
#pragma once

// Locates the messages in Arrow data. The messages in a stream are consecutive; the messages in a file are listed in
// its footer.
//
//     stream    messages, the end mark
//     file      "ARROW1\0\0", a stream, the footer, i32 size of the footer, "ARROW1"
//     message   u32 0xffffffff, i32 size of the metadata, the metadata, the body; before Arrow 0.15 without the u32
//     end mark  a message without metadata

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/arrow/arrow_schema.h"
#include "format/index/opening_reader.h"
#include "storage/reader.h"

namespace feedline::format {

struct ArrowMessage {
  std::uint64_t offset = 0;  // in the file
  std::uint64_t body = 0, body_bytes = 0;
  std::vector<std::byte> metadata;
};

struct ArrowBatch {
  std::shared_ptr<const ArrowMessage> message;
  std::uint64_t rows = 0;
  // The dictionaries that apply to this batch, by id.
  std::shared_ptr<const std::map<std::int64_t, std::shared_ptr<const ArrowMessage>>> dictionaries;
};

struct ArrowMessages {
  ArrowSchema schema;
  std::vector<ArrowBatch> batches;
};

bool begins_as_arrow_file(std::span<const std::byte> bytes);    // "ARROW1"
bool begins_as_arrow_stream(std::span<const std::byte> bytes);  // a message with just a schema

// Parses the schema from a single message that is preceded by its size.
Result<ArrowSchema> read_schema_message(std::span<const std::byte> bytes);

// Reads the metadata of all messages in the file or stream that is in this part of an object. Offsets are relative to
// the object. Fails with kData if a message exceeds its bounds or the end marker is missing, and with kConfig if this
// version does not support a feature.
Result<ArrowMessages> read_arrow_messages(const storage::Reader& reader, ByteRange part);

// Returns the RecordBatch table of a record batch or dictionary message.
FlatTable record_batch_in(FlatBuffer& metadata);

}  // namespace feedline::format
