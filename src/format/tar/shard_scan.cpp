// SPDX-License-Identifier: Apache-2.0
#include "format/tar/shard_scan.h"

#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/field_kind.h"
#include "format/sources/sample_name.h"
#include "format/tar/class_names.h"
#include "format/tar/tar_scanner.h"

namespace feedline::format {
namespace {

// A hard link, which is a member that refers to the data of another member. The other member may come later in the
// archive.
struct HardLink {
  std::uint64_t number;  // number of the member in the index
  TarMember member;
  std::string key;
};

class SampleGrouper {
 public:
  SampleGrouper(const std::string& shard, Findings& findings, std::vector<std::string> class_names)
      : shard_(shard), findings_(findings) {
    builder_.name_classes(std::move(class_names));
  }

  // Whether the member's payload is an integer that the index stores.
  static bool is_integer(const TarMember& member) {
    if (!member.is_regular() || member.sparse) return false;
    const auto name = split_sample_name(member.name);
    if (!name) return false;
    const std::string extension = to_lower(name->extension);
    return usual_kind(extension, extension) == FieldKind::kInteger;
  }

  void add(const TarMember& member, std::optional<std::int64_t> integer) {
    if (!member.is_regular() && !member.is_hard_link()) return skip_irregular(member);
    if (member.name == kClassNamesMember) return;  // written by feedline pack: see class_names.h
    if (is_reserved_name(member.name))
      return report("reserved_name", Severity::kNote, member, "member '" + member.name + "' is skipped as metadata");
    const auto name = split_sample_name(member.name);
    if (!name)
      return report("member_without_dot", Severity::kWarning, member,
                    "member '" + member.name + "' is skipped: its name does not have the form KEY.EXTENSION");
    const std::string extension = to_lower(name->extension);
    ++extensions_[extension];
    if (member.sparse)
      return report("sparse_member", Severity::kError, member,
                    "member '" + member.name + "' is stored as a sparse file; write the archive without --sparse");
    if (!open_ || name->key != key_) start_sample(name->key, member);
    if (builder_.last_sample_has(extension) || extension == "__key__" || extension == "__url__")
      return report("duplicate_suffix", Severity::kError, member,
                    "sample '" + key_ + "' has two members with the suffix '" + extension + "'");
    if (member.is_hard_link()) links_.push_back({builder_.members(), member, key_});
    builder_.add_member(extension, member.offset, member.bytes, integer);
    if (extension == "__bad__" && member.bytes > 0) bad_ = true;
  }

  bool has_links() const { return !links_.empty(); }
  // Resolves links. `targets` maps each name in the archive to its member or, if the name repeats, to the last one, as
  // in `tar`.
  void resolve(const std::map<std::string, TarMember>& targets) {
    for (const HardLink& link : links_) {
      const TarMember* target = &link.member;
      std::size_t steps = 0;
      while (target != nullptr && target->is_hard_link()) {
        const auto found = targets.find(*target->link);
        target = found == targets.end() || ++steps > targets.size() ? nullptr : &found->second;
      }
      if (target == nullptr)
        report("link_without_target", Severity::kError, link.member,
               "member '" + link.member.name + "' is a hard link to '" + *link.member.link +
                   "', which is not in the archive: write the archive again, including the targets of links");
      else if (!target->is_regular())
        report("link_without_target", Severity::kError, link.member,
               "member '" + link.member.name + "' is a hard link to '" + target->name + "', which is not a file");
      else if (target->sparse)
        report("sparse_member", Severity::kError, link.member,
               "member '" + link.member.name + "' is a hard link to '" + target->name +
                   "', which is stored as a sparse file; write the archive without --sparse");
      else
        builder_.move_member(link.number, target->offset, target->bytes);
    }
  }

  void end() { end_sample(); }
  ShardScan finish(const storage::ObjectStat& stat) { return {builder_.build(stat), std::move(extensions_)}; }

 private:
  void start_sample(std::string_view key, const TarMember& member) {
    end_sample();
    const auto [first, fresh] = seen_.try_emplace(std::string(key), member.offset);
    if (!fresh)
      report("key_not_adjacent", Severity::kError, member,
             "key '" + std::string(key) + "' appears twice, at bytes " + std::to_string(first->second) + " and " +
                 std::to_string(member.offset) +
                 ", with other samples in between: the members of a sample must be consecutive. Sort the archive (`tar "
                 "--sort=name`)");
    key_ = key;
    open_ = true;
    builder_.add_sample(key);
  }

  // Ends a sample. Drops it if it has a non-empty member "key.__bad__", with which WebDataset marks bad samples.
  void end_sample() {
    if (!std::exchange(open_, false) || !std::exchange(bad_, false)) return;
    builder_.drop_last_sample();
    std::erase_if(links_, [&](const HardLink& link) { return link.number >= builder_.members(); });
    findings_.add({"marked_bad",
                   Severity::kWarning,
                   shard_,
                   key_,
                   {},
                   "sample '" + key_ + "' is dropped: it is marked as bad by a member __bad__"});
  }

  void skip_irregular(const TarMember& member) {
    if (member.type == '5') return;  // folders have no data and need no report
    report("not_regular", Severity::kWarning, member,
           "member '" + member.name + "' is skipped: " +
               (member.type == '2' ? "a symbolic link to '" + *member.link + "'; write the archive with --dereference"
                                   : "not a regular file"));
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
  std::vector<HardLink> links_;
  std::string key_;
  bool open_ = false;  // whether there is a current sample
  bool bad_ = false;   // whether the current sample is dropped
};

// Returns all members by name. Scans the archive again, which is necessary only if there are links to resolve.
Result<std::map<std::string, TarMember>> members_by_name(const storage::Reader& reader, std::uint64_t bytes) {
  std::map<std::string, TarMember> members;
  Findings seen;  // from the first scan
  TarScanner scanner(reader, bytes, "", seen);
  while (true) {
    FEEDLINE_TRY(std::optional<TarMember> member, scanner.next());
    if (!member) return members;
    // A link to its own name, which can occur after the archive was updated, refers to the earlier member.
    if (member->is_hard_link() && *member->link == member->name) continue;
    std::string name = member->name;
    members.insert_or_assign(std::move(name), std::move(*member));
  }
}

}  // namespace

Result<ShardScan> scan_shard(const storage::Reader& reader, const storage::ObjectStat& stat, const std::string& shard,
                             Findings& findings, std::vector<std::string> class_names) {
  TarScanner scanner(reader, stat.bytes, shard, findings);
  SampleGrouper grouper(shard, findings, std::move(class_names));
  while (true) {
    FEEDLINE_TRY(const std::optional<TarMember> member, scanner.next());
    if (!member) break;
    std::optional<std::int64_t> integer;
    if (SampleGrouper::is_integer(*member)) {
      FEEDLINE_TRY(const auto payload, scanner.short_payload(*member));
      if (payload) integer = parse_integer(*payload);
    }
    grouper.add(*member, integer);
  }
  grouper.end();
  if (grouper.has_links()) {
    FEEDLINE_TRY(const auto targets, members_by_name(reader, stat.bytes));
    grouper.resolve(targets);
  }
  return grouper.finish(stat);
}

}  // namespace feedline::format
