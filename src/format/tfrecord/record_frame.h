// SPDX-License-Identifier: Apache-2.0
#pragma once

// A record as it stands in a TFRecord file, little-endian. Records follow each other from the first byte to the last.
//
//      0  8  length of the data, n
//      8  4  masked CRC-32C of these 8 bytes
//     12  n  data: of any kind, usually a serialized tf.train.Example
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

// A CRC of bytes that hold CRCs themselves says little: so the format turns it by 15 bits and adds a constant.
std::uint32_t masked_crc(std::span<const std::byte> bytes);

// The length that a header says; nullopt: its checksum differs, or there are fewer bytes than a header has.
std::optional<std::uint64_t> length_in_header(std::span<const std::byte> header);

// Is the checksum at a record's end that of its data? Requires: a whole record, with its frame.
bool has_good_data(std::span<const std::byte> record);
// Requires: likewise.
std::span<const std::byte> data_in(std::span<const std::byte> record);

}  // namespace feedline::format
