// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layout of a record in a TFRecord file, little-endian. A file consists of consecutive records.
//
//      0  8  length of the data, n
//      8  4  masked CRC-32C of these 8 bytes
//     12  n  data of any type, usually a serialized tf.train.Example
//     -4  4  masked CRC-32C of the data
//
// Source: tensorflow/core/lib/io/record_writer.h.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace feedline::format {

inline constexpr std::uint64_t kRecordHeaderBytes = 12;
inline constexpr std::uint64_t kRecordFooterBytes = 4;
inline constexpr std::uint64_t kRecordFrameBytes = kRecordHeaderBytes + kRecordFooterBytes;

// The CRC of data that contains CRCs is weak, so the format rotates CRCs by 15 bits and adds a constant.
std::uint32_t masked_crc(std::span<const std::byte> bytes);

// Returns the length in a header; nullopt if its checksum differs or the header is truncated.
std::optional<std::uint64_t> length_in_header(std::span<const std::byte> header);

// Returns whether the checksum at a record's end matches its data. Requires: a whole record, with its frame.
bool has_good_data(std::span<const std::byte> record);
// Requires: a whole record, with its frame.
std::span<const std::byte> data_in(std::span<const std::byte> record);

}  // namespace feedline::format
