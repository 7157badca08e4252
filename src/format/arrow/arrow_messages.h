// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the messages of an Arrow file are: of a stream one behind the other, of a file by its footer.
//
//     stream  messages, the end mark
//     file    "ARROW1\0\0", a stream, the footer, i32 its bytes, "ARROW1"
//     message  u32 0xffffffff, i32 bytes of its metadata, these, its body; before Arrow 0.15 without the first number
//     end mark  a message without metadata

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "format/arrow/arrow_schema.h"
#include "format/opening_reader.h"
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
  // The values of encoded columns, by id: those that were there before it.
  std::shared_ptr<const std::map<std::int64_t, std::shared_ptr<const ArrowMessage>>> dictionaries;
};

struct ArrowMessages {
  ArrowSchema schema;
  std::vector<ArrowBatch> batches;
};

bool begins_as_arrow_file(std::span<const std::byte> bytes);    // "ARROW1"
bool begins_as_arrow_stream(std::span<const std::byte> bytes);  // a message of the size of a schema

// The schema in a single message, preceded by its size.
Result<ArrowSchema> read_schema_message(std::span<const std::byte> bytes);

// Reads the metadata of all messages of the file or stream in this part of an object. Their offsets are the object's.
// kData: a message does not fit, or the end is missing. kConfig: a feature that this version does not read.
Result<ArrowMessages> read_arrow_messages(const storage::Reader& reader, ByteRange part);

// The RecordBatch table of a message, of a dictionary's too.
FlatTable record_batch_in(FlatBuffer& metadata);

}  // namespace feedline::format
