// SPDX-License-Identifier: Apache-2.0
#include "format/tar/tar_scanner.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "decode/image_formats.h"
#include "format/compression/archive_kind.h"

namespace feedline::format {
namespace {

// The maximum length of a name, which is longer than any file system supports. This limit prevents large allocations
// for damaged headers.
constexpr std::uint64_t kLongestExtension = 1 << 20;
// Writers pad the last record with zeros, by default to 10 KiB and in practice at most to 1 MiB. If there are more
// zeros, the file was preallocated, or its end was lost in a power failure.
constexpr std::uint64_t kLongestZeroTail = 1 << 20;

std::uint64_t round_up_to_block(std::uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

// Describes a file that is not a tar.
std::string look_of(std::span<const std::byte> block) {
  const std::string_view start(reinterpret_cast<const char*>(block.data()), std::min(block.size(), kArchiveHead));
  const std::string_view kind = archive_kind_of(std::as_bytes(std::span(start)));
  if (kind == "gzip") return "gzip data inside gzip data";
  if (kind == "zip" || kind == "7z" || kind == "rar")
    return "a " + std::string(kind) + " archive: unpack it, and pack the files as a tar";
  if (!kind.empty()) return std::string(kind) + " data: compress the tar with gzip instead, or not at all";
  if (!decode::image_extension(block).empty()) return "an image";
  return "the first header's checksum is wrong";
}

}  // namespace

TarScanner::TarScanner(const storage::Reader& reader, std::uint64_t archive_bytes, std::string shard,
                       Findings& findings)
    : reader_(reader),
      archive_bytes_(archive_bytes),
      shard_(std::move(shard)),
      window_bytes_(reader.worthwhile_bytes()),
      findings_(findings) {}

Result<std::optional<TarMember>> TarScanner::next() {
  while (true) {
    TarMember member;
    FEEDLINE_TRY(const Step step, read_one(member));
    if (step == Step::kMember) return member;
    if (step == Step::kStop) return std::nullopt;
  }
}

Result<std::optional<std::span<const std::byte>>> TarScanner::short_payload(const TarMember& member) {
  if (member.bytes > kBlockBytes) return std::nullopt;
  FEEDLINE_TRY(const auto block, block_at(member.offset));
  if (!block) return std::nullopt;
  return std::span<const std::byte>(*block).first(static_cast<std::size_t>(member.bytes));
}

TarScanner::Step TarScanner::stop(std::string_view code, std::string text) {
  findings_.add({code, Severity::kError, shard_, "", header_, std::move(text)});
  return Step::kStop;
}

TarScanner::Step TarScanner::truncated(const std::string& name) {
  findings_.add({"truncated_member", Severity::kError, shard_, name, header_,
                 "the tar file is truncated inside member '" + name + "': copy or download it again"});
  return Step::kStop;
}

Result<TarScanner::Step> TarScanner::read_one(TarMember& member) {
  header_ = std::min(position_, archive_bytes_);  // beyond the end if the file is truncated in a payload's padding
  if (archive_bytes_ == 0) return stop("empty_file", "the file is empty, so it is not a tar file");
  if (position_ >= archive_bytes_)
    return stop("no_end_of_archive",
                "the tar file ends without its end marker (two blocks of zeros): members are missing. Copy or download "
                "it again");
  FEEDLINE_TRY(const auto block, block_at(position_));
  if (!block && position_ == 0) {  // shorter than a header
    std::array<std::byte, kArchiveHead> start{};
    FEEDLINE_TRY(const std::size_t got, reader_.read_at(0, start));
    if (!archive_kind_of(std::span(start).first(got)).empty())
      return stop("not_tar", "not a tar file: " + look_of(std::span(start).first(got)));
  }
  if (!block) return stop("truncated_header", "the tar file is truncated inside a header: copy or download it again");
  if (is_zero(*block)) return read_end();
  auto header = parse_header(*block);
  if (!header && position_ == 0 && header.error().checksum)
    return stop("not_tar", "not a tar file: " + look_of(*block));
  if (!header && header.error().checksum)
    return stop("bad_checksum", "damaged: a member's header has a wrong checksum; the rest cannot be read");
  if (!header) return stop("bad_header", "damaged: " + header.error().text);
  position_ += kBlockBytes;
  constexpr std::string_view kExtensions = "xXgLK";
  if (kExtensions.find(header->type) != std::string_view::npos) return read_extension(*header);
  return place_member(std::move(*header), member);
}

// Reads an extended header: the full name ('L') or link target ('K') of the next member, or PAX records ('x', 'g', and
// 'X' on Solaris). If several headers name the next member, the first is used, as in Python's tarfile.
Result<TarScanner::Step> TarScanner::read_extension(const TarHeader& header) {
  if (header.bytes > kLongestExtension)
    return stop("bad_header", "damaged: an extended header of " + std::to_string(header.bytes) + " bytes");
  if (header.bytes > archive_bytes_ - position_) return truncated(header.name);
  std::vector<std::byte> data(header.bytes);
  FEEDLINE_TRY(const std::size_t got, reader_.read_at(position_, data));
  if (got < data.size()) return truncated(header.name);
  position_ += round_up_to_block(header.bytes);
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  PaxRecords records;
  if (header.type == 'K') {
    records.link = text.substr(0, text.find('\0'));
  } else if (header.type == 'L') {
    records.path = text.substr(0, text.find('\0'));
  } else if (const auto parsed = parse_pax(text, header.type == 'g' ? global_ : records); !parsed) {
    return stop("bad_header", parsed.error().text);
  }
  if (!next_.path) next_.path = std::move(records.path);
  if (!next_.link) next_.link = std::move(records.link);
  if (!next_.bytes) next_.bytes = records.bytes;
  if (records.sparse) next_.sparse = true;
  if (!next_.sparse_path) next_.sparse_path = std::move(records.sparse_path);
  return Step::kGoOn;
}

Result<TarScanner::Step> TarScanner::place_member(TarHeader header, TarMember& member) {
  const PaxRecords records = std::exchange(next_, {});
  member.type = header.type;
  member.sparse = header.type == 'S' || records.sparse || global_.sparse;
  member.name = records.sparse_path ? *records.sparse_path
                : records.path      ? *records.path
                : global_.path      ? *global_.path
                                    : std::move(header.name);
  if (header.type == '1' || header.type == '2')
    member.link = records.link ? *records.link : global_.link ? *global_.link : std::string(header.link);
  member.bytes = records.bytes ? *records.bytes : global_.bytes ? *global_.bytes : header.bytes;
  // links, devices, folders and pipes have no payload, regardless of their size
  if (header.type >= '1' && header.type <= '6') member.bytes = 0;
  for (bool more = header.sparse_continues; more; position_ += kBlockBytes) {
    constexpr std::size_t kContinuesOffset = 504;  // in a continuation block of the sparse map
    FEEDLINE_TRY(const auto block, block_at(position_));
    if (!block) return truncated(member.name);
    more = (*block)[kContinuesOffset] != std::byte{0};
  }
  member.offset = position_;
  if (position_ > archive_bytes_ || member.bytes > archive_bytes_ - position_) return truncated(member.name);
  position_ += round_up_to_block(member.bytes);
  return Step::kMember;
}

// Handles a zero block. POSIX ends an archive with two zero blocks. If there is only one zero block, all members exist,
// but the writer did not finish the file. More zeros may follow, because writers pad the last record. Members must not
// follow, because all tar readers stop here and would not see later members.
Result<TarScanner::Step> TarScanner::read_end() {
  if (next_.path || next_.link || next_.bytes || next_.sparse)
    return stop("no_end_of_archive", "the tar file ends after an extended header, before its member");
  FEEDLINE_TRY(const auto second, block_at(position_ + kBlockBytes));
  if (!second)
    return stop(
        "no_end_of_archive",
        "the tar file is truncated inside its end marker, which has two blocks of zeros: copy or download it again");
  if (!is_zero(*second))
    return stop("no_end_of_archive",
                "damaged: a single block of zeros between members; readers stop here and lose the rest");
  std::uint64_t zeros = position_ + 2 * kBlockBytes;
  for (; zeros < archive_bytes_ && zeros - position_ <= kLongestZeroTail; zeros += kBlockBytes) {
    FEEDLINE_TRY(const auto block, block_at(zeros));
    if (!block || is_zero(*block)) continue;
    header_ = zeros;
    if (parse_header(*block))
      return stop(
          "data_after_end",
          "members follow the end marker, as after `cat a.tar b.tar`; readers stop at the marker and lose them. "
          "Join archives with `tar --concatenate`, or list them one by one");
    findings_.add(
        {"data_after_end", Severity::kWarning, shard_, "", zeros, "bytes that are not members follow the end marker"});
    return Step::kStop;
  }
  if (zeros < archive_bytes_)
    return stop("zero_filled_tail", std::to_string((archive_bytes_ - position_) >> 20) +
                                        " MiB of zeros instead of members: the file was preallocated and never filled, "
                                        "or its end was lost. Copy or download it again");
  return Step::kStop;
}

Result<std::optional<TarBlock>> TarScanner::block_at(std::uint64_t offset) {
  if (offset > archive_bytes_ || archive_bytes_ - offset < kBlockBytes) return std::nullopt;
  const bool inside = offset >= window_begin_ && offset - window_begin_ + kBlockBytes <= window_filled_;
  if (!inside) {
    window_.resize(window_bytes_);  // at most once
    window_begin_ = offset;
    const std::uint64_t wanted = std::min<std::uint64_t>(window_bytes_, archive_bytes_ - offset);
    window_filled_ = 0;
    FEEDLINE_TRY(window_filled_, reader_.read_at(offset, std::span(window_).first(wanted)));
    if (window_filled_ < kBlockBytes) return std::nullopt;  // the file has become shorter
  }
  return std::span(window_).subspan(static_cast<std::size_t>(offset - window_begin_)).first<kBlockBytes>();
}

}  // namespace feedline::format
