// SPDX-License-Identifier: Apache-2.0
#pragma once

// The quantised coefficients of a JPEG, read and written by libjpeg, for lossless transformations.

#include <cstddef>
#include <cstdio>
#include <span>
#include <vector>

#include <jpeglib.h>

#include "decode/jpeg/jpeg_source.h"
#include "decode/jpeg/jpeg_trap.h"
#include "feedline/error.h"

namespace feedline::decode {

class JpegCoefficients {
 public:
  JpegCoefficients();
  ~JpegCoefficients();
  JpegCoefficients(const JpegCoefficients&) = delete;
  JpegCoefficients& operator=(const JpegCoefficients&) = delete;

  // Reads the header. `bytes` must stay valid until read() returns. kData: libjpeg cannot read the JPEG.
  Result<void> open(std::span<const std::byte> bytes);
  // Requires: open() has succeeded. kData: pixels are missing or damaged.
  Result<void> read();

  // Requires: open() succeeded.
  const jpeg_decompress_struct& header() const { return jpeg_; }
  // Returns the number of bytes after the image's end marker. Requires: read() succeeded.
  std::size_t bytes_behind() const { return source_.ran_out ? 0 : source_.callbacks.bytes_in_buffer; }
  // Returns whether both images have the same coefficients and quantisation. Requires: read() has succeeded for both.
  bool equal(JpegCoefficients& other);

 private:
  friend class WrittenJpeg;
  const JBLOCK* row(int component, JDIMENSION y);

  jpeg_decompress_struct jpeg_{};
  ErrorTrap trap_{};
  JpegSource source_{};
  jvirt_barray_ptr* arrays_ = nullptr;
};

enum class HuffmanTables : bool { kKept, kMade };

class WrittenJpeg {
 public:
  WrittenJpeg();
  ~WrittenJpeg();
  WrittenJpeg(const WrittenJpeg&) = delete;
  WrittenJpeg& operator=(const WrittenJpeg&) = delete;

  // Writes one scan with a restart marker after every `restart_interval` MCUs. May be called only once. Returns false
  // if a coefficient is too large for any code. The output is invalid if a reused table lacks a required code.
  [[nodiscard]] bool write(JpegCoefficients& from, int restart_interval, HuffmanTables tables);
  std::span<const std::byte> bytes() const { return destination_.bytes; }

 private:
  // libjpeg's own memory destination leaks its buffer if libjpeg exits during a write.
  struct Destination {
    jpeg_destination_mgr callbacks{};
    std::vector<std::byte> bytes{};
  };
  void attach_destination();
  void offer(std::size_t filled);
  void keep_tables(const jpeg_decompress_struct& from);
  void copy(const JHUFF_TBL* from, JHUFF_TBL*& to);

  jpeg_compress_struct jpeg_{};
  ErrorTrap trap_{};
  Destination destination_{};
};

}  // namespace feedline::decode
