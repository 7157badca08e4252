// SPDX-License-Identifier: Apache-2.0
#pragma once

// The little-endian layout of a record in a TFRecord file. A file consists of consecutive records.
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

// Returns the CRC rotated by 15 bits, plus a constant. The format stores it in this form because the CRC of data that
// contains CRCs is weak.
std::uint32_t masked_crc(std::span<const std::byte> bytes);

// Returns the length in a header, or nullopt if its checksum is wrong or the header is truncated.
std::optional<std::uint64_t> length_in_header(std::span<const std::byte> header);

// Returns whether the checksum at the end of a record matches its data. Requires: `record` is a whole record with its
// frame.
bool has_good_data(std::span<const std::byte> record);
// Requires: `record` is a whole record with its frame.
std::span<const std::byte> data_in(std::span<const std::byte> record);

}  // namespace feedline::format
