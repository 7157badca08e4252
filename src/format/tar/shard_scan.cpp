// SPDX-License-Identifier: Apache-2.0
#include "format/tar/shard_scan.h"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "format/class_names.h"
#include "format/tar/sample_name.h"
#include "format/tar/tar_scanner.h"

namespace feedline::format {
namespace {

class SampleGrouper {
 public:
  SampleGrouper(const std::string& shard, Findings& findings, std::vector<std::string> class_names)
      : shard_(shard), findings_(findings) {
    builder_.name_classes(std::move(class_names));
  }

  void add(const TarMember& member) {
    if (!member.is_regular()) return skip_irregular(member);
    if (member.name == kClassNamesMember) return;  // of feedline pack: see class_names.h
    if (is_reserved_name(member.name))
      return report("reserved_name", Severity::kNote, member, "member '" + member.name + "' is skipped as metadata");
    const auto name = split_sample_name(member.name);
    if (!name)
      return report("member_without_dot", Severity::kWarning, member,
                    "member '" + member.name + "' is skipped: its name has no key and extension");
    const std::string extension = to_lower(name->extension);
    ++extensions_[extension];
    if (member.sparse)
      return report("sparse_member", Severity::kError, member,
                    "member '" + member.name + "' is stored sparse; write the archive without --sparse");
    if (!open_ || name->key != key_) start_sample(name->key, member);
    if (builder_.last_sample_has(extension) || extension == "__key__" || extension == "__url__")
      return report("duplicate_suffix", Severity::kError, member,
                    "sample '" + key_ + "' has two members with the suffix '" + extension + "'");
    builder_.add_member(extension, member.offset, member.bytes);
    if (extension == "__bad__" && member.bytes > 0) bad_ = true;
  }

  ShardScan finish(const storage::ObjectStat& stat) {
    end_sample();
    return {builder_.build(stat), std::move(extensions_)};
  }

 private:
  void start_sample(std::string_view key, const TarMember& member) {
    end_sample();
    const auto [first, fresh] = seen_.try_emplace(std::string(key), member.offset);
    if (!fresh)
      report("key_not_adjacent", Severity::kError, member,
             "key '" + std::string(key) + "' comes twice, at bytes " + std::to_string(first->second) + " and " +
                 std::to_string(member.offset) +
                 ", with other samples in between: the members of a sample must follow "
                 "one another. Sort the archive (`tar --sort=name`)");
    key_ = key;
    open_ = true;
    builder_.add_sample(key);
  }

  // WebDataset's own way to take a sample back: a member "key.__bad__" that is not empty.
  void end_sample() {
    if (!std::exchange(open_, false) || !std::exchange(bad_, false)) return;
    builder_.drop_last_sample();
    findings_.add({"marked_bad",
                   Severity::kWarning,
                   shard_,
                   key_,
                   {},
                   "sample '" + key_ + "' is dropped: it is marked as bad by a member __bad__"});
  }

  void skip_irregular(const TarMember& member) {
    if (member.type == '5') return;  // folders hold nothing: not worth a word
    const bool link = member.type == '1' || member.type == '2';
    report("not_regular", Severity::kWarning, member,
           "member '" + member.name + "' is skipped: " +
               (link ? "a link; write the archive with --dereference --hard-dereference" : "not a regular file"));
  }

  void report(std::string_view code, Severity severity, const TarMember& member, std::string text) {
    const auto name = split_sample_name(member.name);
    findings_.add(
        {code, severity, shard_, name ? std::string(name->key) : member.name, member.offset, std::move(text)});
  }

  const std::string& shard_;
  Findings& findings_;
  ShardIndexBuilder builder_;
  std::map<std::string, std::uint64_t> extensions_;
  std::unordered_map<std::string, std::uint64_t> seen_;  // key -> payload offset of its first member
  std::string key_;
  bool open_ = false;  // a sample was started
  bool bad_ = false;   // and is to be dropped
};

}  // namespace

Result<ShardScan> scan_shard(const storage::Reader& reader, const storage::ObjectStat& stat, const std::string& shard,
                             Findings& findings, std::vector<std::string> class_names) {
  TarScanner scanner(reader, stat.bytes, shard, findings);
  SampleGrouper grouper(shard, findings, std::move(class_names));
  while (true) {
    FEEDLINE_TRY(const std::optional<TarMember> member, scanner.next());
    if (!member) return grouper.finish(stat);
    grouper.add(*member);
  }
}

}  // namespace feedline::format
