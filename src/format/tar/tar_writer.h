// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes tar archives byte by byte for tests, including unusual and damaged ones.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace feedline::format {

class TarWriter {
 public:
  enum class Dialect { kV7, kUstar, kGnu, kPax };
  enum class Sum { kUnsigned, kSigned, kWrong };

  explicit TarWriter(Dialect dialect = Dialect::kUstar) : dialect_(dialect) {}

  // Long names are stored in the form of the dialect: prefix, 'L' member or PAX path.
  TarWriter& add(const std::string& name, std::string_view content, char type = '0') {
    return header(prepare(name), content.size(), type).payload(content);
  }
  // Writes only a header; `bytes` need not match the payload.
  TarWriter& header(const std::string& name, std::uint64_t bytes, char type = '0', Sum sum = Sum::kUnsigned) {
    std::string block(512, '\0');
    const auto put = [&block](std::size_t at, std::string_view text) { block.replace(at, text.size(), text); };
    put(0, std::string_view(name).substr(0, 100));
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, size_field(bytes));
    put(136, "14000000000");
    block[156] = type;
    if (dialect_ == Dialect::kUstar || dialect_ == Dialect::kPax) put(257, std::string_view("ustar\00000", 8));
    if (dialect_ == Dialect::kGnu) put(257, std::string_view("ustar  \0", 8));
    if (!prefix_.empty()) put(345, prefix_);
    prefix_.clear();
    write_sum(block, sum);
    bytes_ += block;
    return *this;
  }
  // Updates the checksum of the first header of `archive`, after a test has changed the header.
  static void write_sum(std::string& archive, Sum sum = Sum::kUnsigned) {
    archive.replace(148, 8, "        ");
    std::int64_t total = sum == Sum::kWrong ? 1 : 0;
    for (const char c : std::string_view(archive).substr(0, 512))
      total += sum == Sum::kSigned ? static_cast<signed char>(c) : static_cast<unsigned char>(c);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", static_cast<unsigned>(total));
    archive.replace(148, 7, std::string_view(digits, 7));  // with its NUL; the space after it stays
  }
  TarWriter& payload(std::string_view content) {
    bytes_ += content;
    bytes_.resize((bytes_.size() + 511) / 512 * 512, '\0');
    return *this;
  }
  // Writes one record of an extended header: "LENGTH keyword=value\n". The length includes the digits of the length
  // itself.
  static std::string pax_record(const std::string& keyword, const std::string& value) {
    const std::size_t rest = keyword.size() + value.size() + 3;
    std::size_t length = rest + 1;
    while (std::to_string(length).size() + rest != length) ++length;
    return std::to_string(length) + " " + keyword + "=" + value + "\n";
  }
  TarWriter& pax(const std::string& records, char type = 'x') {
    return header("PaxHeaders/0", records.size(), type).payload(records);
  }
  TarWriter& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  // Returns the archive with `zero_blocks` zero blocks at its end.
  std::string finish(std::size_t zero_blocks = 2) const { return bytes_ + std::string(zero_blocks * 512, '\0'); }

 private:
  std::string size_field(std::uint64_t bytes) const {
    char digits[13];
    if (bytes >> 33 == 0) {
      std::snprintf(digits, sizeof digits, "%011lo", static_cast<unsigned long>(bytes));
      return {digits, 12};
    }
    std::string field(12, '\0');
    field[0] = '\x80';
    for (std::size_t i = 11; i > 3; --i, bytes >>= 8) field[i] = static_cast<char>(bytes & 255);
    return field;
  }
  std::string prepare(const std::string& name) {
    if (name.size() <= 100) return name;
    if (dialect_ == Dialect::kGnu) header("././@LongLink", name.size() + 1, 'L').payload(name + '\0');
    if (dialect_ == Dialect::kPax) pax(pax_record("path", name));
    if (dialect_ != Dialect::kUstar) return name.substr(0, 100);
    const std::size_t slash = name.find('/', name.size() - 101);
    prefix_ = name.substr(0, slash);
    return name.substr(slash + 1);
  }

  Dialect dialect_;
  std::string bytes_;
  std::string prefix_;
};

}  // namespace feedline::format
